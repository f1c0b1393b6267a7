package org.sqlcached.client;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.nio.Buffer;
import java.util.Optional;

/**
 * Calls of C functions by the foreign-function interface, which Java has since its version 22.
 *
 * <p>Its classes are found by their names, because this is compiled by Java 17. A pointer is a {@code long}: 64-bit
 * machines pass both alike. Handles in final fields are as fast as calls of Java.
 */
final class Foreign {
    private static final int SINCE = 22;
    private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();

    /** Functions by their parameters: the first is the function. */
    static final MethodHandle FREE;
    static final MethodHandle NEW;
    static final MethodHandle OPEN;
    static final MethodHandle OPEN_TABLE;
    static final MethodHandle PEEK;
    static final MethodHandle INT_OF;
    static final MethodHandle LONG_OF;
    static final MethodHandle DATA;

    /** Of an address and a number of bytes: the bytes. */
    static final MethodHandle BYTES;

    /** Why this Java has no such interface; null if it has it. */
    static final String MISSING;

    private static final MethodHandle ADDRESS;
    private static final MethodHandle TEXT;

    static {
        MethodHandle[] made = new MethodHandle[11];
        String why = null;
        int version = Runtime.version().feature();
        try {
            if (version < SINCE) {
                throw new ClassNotFoundException();
            }
            Made all = new Made();
            made[0] = all.function(void.class, long.class);
            made[1] = all.function(long.class);
            made[2] = all.function(int.class, long.class, long.class);
            made[3] = all.function(int.class, long.class, long.class, long.class);
            made[4] = all.function(int.class, long.class, long.class, long.class, long.class);
            made[5] = all.function(int.class, long.class);
            made[6] = all.function(long.class, long.class);
            made[7] = all.function(long.class, long.class, long.class);
            made[8] = all.bytes();
            made[9] = all.address();
            made[10] = all.text();
        } catch (ClassNotFoundException none) {
            why = "reading shared memory needs Java " + SINCE + " or later, this is " + version;
        } catch (Throwable none) {
            why = "this Java does not call C functions: " + none;
        }
        FREE = made[0];
        NEW = made[1];
        OPEN = made[2];
        OPEN_TABLE = made[3];
        PEEK = made[4];
        INT_OF = made[5];
        LONG_OF = made[6];
        DATA = made[7];
        BYTES = made[8];
        ADDRESS = made[9];
        TEXT = made[10];
        MISSING = why;
    }

    private Foreign() {
    }

    /** The handles, made of the interface's classes. */
    private static final class Made {
        private final Class<?> segment = named("MemorySegment");
        private final Class<?> layout = named("MemoryLayout");
        private final Class<?> values = named("ValueLayout");
        private final MethodHandle segmentAt = LOOKUP.findStatic(segment, "ofAddress", MethodType.methodType(segment, long.class));
        private final MethodHandle sized;

        Made() throws ReflectiveOperationException {
            MethodHandle reinterpret = LOOKUP.findVirtual(segment, "reinterpret", MethodType.methodType(segment, long.class));
            sized = MethodHandles.filterArguments(reinterpret, 0, segmentAt);
        }

        private Object layout(Class<?> type) throws ReflectiveOperationException {
            return values.getField("JAVA_" + type.getName().toUpperCase(java.util.Locale.ROOT)).get(null);
        }

        MethodHandle function(Class<?> result, Class<?>... parameters) throws Throwable {
            Object layouts = Array.newInstance(layout, parameters.length);
            for (int at = 0; at < parameters.length; at++) {
                Array.set(layouts, at, layout(parameters[at]));
            }
            Class<?> descriptor = named("FunctionDescriptor");
            Object described = result == void.class
                    ? descriptor.getMethod("ofVoid", layouts.getClass()).invoke(null, layouts)
                    : descriptor.getMethod("of", layout, layouts.getClass()).invoke(null, layout(result), layouts);
            Class<?> linker = named("Linker");
            Object options = Array.newInstance(named("Linker$Option"), 0);
            MethodHandle call = (MethodHandle) LOOKUP
                    .findVirtual(linker, "downcallHandle", MethodType.methodType(MethodHandle.class, descriptor, options.getClass()))
                    .asFixedArity()
                    .invoke(linker.getMethod("nativeLinker").invoke(null), described, options);
            return MethodHandles.filterArguments(call, 0, segmentAt);
        }

        MethodHandle bytes() throws ReflectiveOperationException {
            Class<?> type = named("ValueLayout$OfByte");
            MethodHandle array = LOOKUP.findVirtual(segment, "toArray", MethodType.methodType(byte[].class, type));
            MethodHandle plain = MethodHandles.insertArguments(array, 1, layout(byte.class));
            return MethodHandles.filterReturnValue(sized, plain);
        }

        MethodHandle address() throws ReflectiveOperationException {
            MethodHandle of = LOOKUP.findStatic(segment, "ofBuffer", MethodType.methodType(segment, Buffer.class));
            return MethodHandles.filterReturnValue(of, LOOKUP.findVirtual(segment, "address", MethodType.methodType(long.class)));
        }

        MethodHandle text() throws ReflectiveOperationException {
            MethodHandle string = LOOKUP.findVirtual(segment, "getString", MethodType.methodType(String.class, long.class));
            MethodHandle whole = MethodHandles.insertArguments(sized, 1, (long) Limits.MESSAGE);
            return MethodHandles.filterReturnValue(whole, MethodHandles.insertArguments(string, 1, 0L));
        }
    }

    private static Class<?> named(String name) throws ClassNotFoundException {
        return Class.forName("java.lang.foreign." + name);
    }

    /** What a handle threw, though C functions throw nothing: {@code invokeExact} may throw anything. */
    static RuntimeException failed(Throwable why) {
        if (why instanceof Error error) {
            throw error;
        }
        if (why instanceof RuntimeException known) {
            return known;
        }
        return new SqlcachedException("a call of the C library failed", why);
    }

    /** Where the memory of a direct buffer is. It lives as long as the buffer. */
    static long address(Buffer direct) {
        try {
            return (long) ADDRESS.invokeExact(direct);
        } catch (Throwable why) {
            throw failed(why);
        }
    }

    /** A text that ends in 0. */
    static String text(long address) {
        try {
            return (String) TEXT.invokeExact(address);
        } catch (Throwable why) {
            throw failed(why);
        }
    }

    /** The functions of a library. It stays loaded until the program ends. */
    static final class Functions {
        private final Object lookup;
        private final Method find;
        private final String name;

        /** @param name of a library that the system's loader finds, or its path */
        Functions(String name) {
            if (MISSING != null) {
                throw new SqlcachedException(MISSING);
            }
            this.name = name;
            try {
                Class<?> type = named("SymbolLookup");
                Class<?> arena = named("Arena");
                Object global = arena.getMethod("global").invoke(null);
                lookup = LOOKUP
                        .findStatic(type, "libraryLookup", MethodType.methodType(type, String.class, arena))
                        .invoke(name, global);
                find = type.getMethod("find", String.class);
            } catch (IllegalArgumentException why) {
                throw new SqlcachedException("the library " + name + " is not found: install it, or say where it is", why);
            } catch (Throwable why) {
                throw failed(why);
            }
        }

        long address(String function) {
            try {
                Object found = ((Optional<?>) find.invoke(lookup, function))
                        .orElseThrow(() -> new SqlcachedException(name + " has no function " + function));
                return (long) LOOKUP
                        .findVirtual(named("MemorySegment"), "address", MethodType.methodType(long.class))
                        .invoke(found);
            } catch (Throwable why) {
                throw failed(why);
            }
        }
    }
}
