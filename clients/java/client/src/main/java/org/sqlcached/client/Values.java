package org.sqlcached.client;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InvalidClassException;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Date;
import java.util.List;
import java.util.zip.GZIPInputStream;

/**
 * How Java's values become bytes with memcached's flags, and come back as what they were. Text and numbers stay legible
 * in SQL; the rest is serialized by Java. What spymemcached stored is read, too.
 *
 * <p>Only objects of allowed classes are made of what a cache has: those of {@code java.lang}, {@code java.math},
 * {@code java.time} and {@code java.util}, and those that the program names.
 */
public final class Values {
    /** Flags. Text and bytes have those of spymemcached, which reads them. */
    static final int TEXT = 0;
    static final int BYTES = 8 << 8;
    private static final int SERIALIZED = 1;
    private static final int COMPRESSED = 2;
    private static final int SPECIAL = 0x7f00;

    /** Legible numbers, and the text without letters: no bytes with the flags 0 are a place that is reserved. */
    private static final int OWN = 0x4000;
    private static final int INTEGER = OWN;
    private static final int LONG = OWN + 0x100;
    private static final int SHORT = OWN + 0x200;
    private static final int BYTE = OWN + 0x300;
    private static final int DOUBLE = OWN + 0x400;
    private static final int FLOAT = OWN + 0x500;
    private static final int BOOLEAN = OWN + 0x600;
    private static final int EMPTY = OWN + 0x700;

    /** An interface has no objects, but arrays. */
    private static final String ALLOWED = "java.io.Serializable;java.lang.*;java.math.*;java.time.*;java.time.chrono.*;java.util.*;"
            + "java.util.concurrent.*;java.util.concurrent.atomic.*;";
    private static final String BOUNDS = "maxdepth=200;maxrefs=10000000;maxarray=16777216;";

    private final ObjectInputFilter filter;
    private final ClassLoader loader;

    /**
     * @param classes patterns of {@link java.io.ObjectInputFilter}, such as {@code shop.Page} or {@code shop.model.**}
     * @param loader finds them; null for that of the calling thread
     */
    public Values(List<String> classes, ClassLoader loader) {
        for (String each : classes) {
            if (each.contains(";") || each.contains("=") || each.startsWith("!")) {
                throw new IllegalArgumentException("'" + each + "' is no pattern of a class");
            }
        }
        String own = classes.isEmpty() ? "" : String.join(";", classes) + ";";
        this.filter = ObjectInputFilter.Config.createFilter(BOUNDS + ALLOWED + own + "!*");
        this.loader = loader;
    }

    /**
     * @param list patterns with commas between them, or null
     * @return the patterns
     */
    public static List<String> patterns(String list) {
        String all = list == null ? "" : list.trim();
        return all.isEmpty() ? List.of() : List.of(all.split("\\s*,\\s*"));
    }

    /** @param classes patterns of classes that are allowed, such as {@code shop.model.**} */
    public Values(String... classes) {
        this(List.of(classes), null);
    }

    /**
     * Bytes and what they are.
     *
     * @param data the bytes
     * @param flags what they are
     */
    public record Dumped(byte[] data, int flags) {
    }

    /**
     * @param value a value
     * @return its bytes
     * @throws IllegalArgumentException if it cannot be serialized
     */
    public Dumped dump(Object value) {
        if (value instanceof String text) {
            return Keys.text(text).equals(text) ? text(text, text.isEmpty() ? EMPTY : TEXT) : serialized(value);
        }
        if (value instanceof byte[] data) {
            return new Dumped(data, BYTES);
        }
        int flags = number(value);
        return flags == 0 ? serialized(value) : text(value.toString(), flags);
    }

    private static Dumped text(String text, int flags) {
        return new Dumped(text.getBytes(StandardCharsets.UTF_8), flags);
    }

    private static int number(Object value) {
        if (value instanceof Integer) {
            return INTEGER;
        } else if (value instanceof Long) {
            return LONG;
        } else if (value instanceof Boolean) {
            return BOOLEAN;
        } else if (value instanceof Double) {
            return DOUBLE;
        } else if (value instanceof Float) {
            return FLOAT;
        } else if (value instanceof Short) {
            return SHORT;
        }
        return value instanceof Byte ? BYTE : 0;
    }

    private static Dumped serialized(Object value) {
        ByteArrayOutputStream out = new ByteArrayOutputStream(512);
        try (ObjectOutputStream stream = new ObjectOutputStream(out)) {
            stream.writeObject(value);
        } catch (IOException why) {
            throw new IllegalArgumentException("a value of " + value.getClass().getName() + " cannot be serialized", why);
        }
        return new Dumped(out.toByteArray(), SERIALIZED);
    }

    /**
     * @param item a row
     * @return its value
     * @throws LoadException if it does not load
     */
    public Object load(Item item) throws LoadException {
        return load(item.data(), item.flags());
    }

    /**
     * @param data a value's bytes
     * @param allFlags its flags. The upper 17 bits may say something else
     * @return the value
     * @throws LoadException if it does not load
     */
    public Object load(byte[] data, int allFlags) throws LoadException {
        int flags = allFlags & 0x7fff;
        try {
            byte[] plain = (flags & COMPRESSED) != 0 ? unpacked(data) : data;
            if ((flags & SERIALIZED) != 0) {
                return deserialized(plain);
            }
            return (flags & OWN) != 0 ? legible(plain, flags & SPECIAL) : special(plain, flags & SPECIAL);
        } catch (IOException | ClassNotFoundException | RuntimeException | StackOverflowError | NoClassDefFoundError why) {
            throw new LoadException(why);
        }
    }

    private static Object legible(byte[] data, int flags) {
        // A number that became shorter by subtraction has blanks at its end.
        String text = new String(data, StandardCharsets.UTF_8).stripTrailing();
        return switch (flags) {
            case INTEGER -> Integer.valueOf(text);
            case LONG -> Long.valueOf(text);
            case SHORT -> Short.valueOf(text);
            case BYTE -> Byte.valueOf(text);
            case DOUBLE -> Double.valueOf(text);
            case FLOAT -> Float.valueOf(text);
            case BOOLEAN -> Boolean.valueOf(text);
            case EMPTY -> text;
            default -> throw new IllegalArgumentException("flags that are not known: " + flags);
        };
    }

    /** As spymemcached wrote it. */
    private static Object special(byte[] data, int flags) {
        return switch (flags) {
            case TEXT -> new String(data, StandardCharsets.UTF_8);
            case 1 << 8 -> data.length == 1 && data[0] == '1';
            case 2 << 8 -> (int) packed(data);
            case 3 << 8 -> packed(data);
            case 4 << 8 -> new Date(packed(data));
            case 5 << 8 -> data.length == 0 ? (byte) 0 : data[0];
            case 6 << 8 -> Float.intBitsToFloat((int) packed(data));
            case 7 << 8 -> Double.longBitsToDouble(packed(data));
            case BYTES -> data;
            default -> throw new IllegalArgumentException("flags that are not known: " + flags);
        };
    }

    /** A number without the zeros at its beginning. */
    private static long packed(byte[] data) {
        if (data.length > 8) {
            throw new IllegalArgumentException("a number of " + data.length + " bytes");
        }
        byte[] all = new byte[8];
        System.arraycopy(data, 0, all, 8 - data.length, data.length);
        return ByteBuffer.wrap(all).getLong();
    }

    private static byte[] unpacked(byte[] data) throws IOException {
        try (GZIPInputStream stream = new GZIPInputStream(new ByteArrayInputStream(data))) {
            byte[] plain = stream.readNBytes(Limits.UNPACKED);
            if (stream.read() >= 0) {
                throw new IOException("more than " + Limits.UNPACKED + " bytes");
            }
            return plain;
        }
    }

    private Object deserialized(byte[] data) throws IOException, ClassNotFoundException {
        try (Reader stream = new Reader(data)) {
            stream.setObjectInputFilter(stream::judged);
            return stream.readObject();
        }
    }

    /** Finds classes by the loader of the cache, and says which of them is not allowed. */
    private final class Reader extends ObjectInputStream {
        Reader(byte[] data) throws IOException {
            super(new ByteArrayInputStream(data));
        }

        private ObjectInputFilter.Status judged(ObjectInputFilter.FilterInfo info) {
            ObjectInputFilter.Status status = filter.checkInput(info);
            if (status == ObjectInputFilter.Status.REJECTED && info.serialClass() != null) {
                throw new IllegalArgumentException(
                        info.serialClass().getName() + " is not among the classes that may be made of what a cache has");
            }
            return status;
        }

        @Override
        protected Class<?> resolveClass(ObjectStreamClass described) throws IOException, ClassNotFoundException {
            ClassLoader from = loader == null ? Thread.currentThread().getContextClassLoader() : loader;
            try {
                return Class.forName(described.getName(), false, from);
            } catch (ClassNotFoundException why) {
                // Primitive types, and what the loader of the cache does not see.
                return super.resolveClass(described);
            }
        }

        /** No proxies: their handler could be anything. */
        @Override
        protected Class<?> resolveProxyClass(String[] interfaces) throws IOException {
            throw new InvalidClassException("proxies are not allowed");
        }
    }

    /** A value that does not load: broken bytes, or a class that is not allowed or not there. */
    public static final class LoadException extends Exception {
        private static final long serialVersionUID = 1L;

        LoadException(Throwable cause) {
            super(String.valueOf(first(cause).getMessage()), cause);
        }

        /** What happened first says most: Java hides behind one word why it refused a class. */
        private static Throwable first(Throwable why) {
            return why.getCause() == null ? why : first(why.getCause());
        }
    }
}
