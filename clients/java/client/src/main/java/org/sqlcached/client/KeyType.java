package org.sqlcached.client;

import java.util.Base64;
import java.util.UUID;
import java.util.function.Function;

/**
 * How keys of a type are written as text: as they are shown, where they have one spelling.
 *
 * @param <K> the type of the keys
 */
public final class KeyType<K> {
    /** What begins a key of {@link #any} that is not itself a text. */
    private static final char MARK = '\u0001';

    private final Class<?> type;
    private final Function<Object, String> written;
    private final Function<String, Object> read;

    private KeyType(Class<?> type, Function<Object, String> written, Function<String, Object> read) {
        this.type = type;
        this.written = written;
        this.read = read;
    }

    /** @return texts */
    public static KeyType<String> strings() {
        return new KeyType<>(String.class, Object::toString, text -> text);
    }

    /**
     * @param type of the keys
     * @param values reads keys that Java has serialized
     * @return text for String, Integer, Long and UUID as SQL shows them; other keys as {@link #any}
     * @param <T> the type
     */
    public static <T> KeyType<T> of(Class<T> type, Values values) {
        if (type == String.class) {
            return new KeyType<>(type, Object::toString, text -> text);
        } else if (type == Integer.class) {
            return new KeyType<>(type, Object::toString, text -> spelled(text, Integer.valueOf(text)));
        } else if (type == Long.class) {
            return new KeyType<>(type, Object::toString, text -> spelled(text, Long.valueOf(text)));
        } else if (type == UUID.class) {
            return new KeyType<>(type, Object::toString, text -> spelled(text, UUID.fromString(text)));
        }
        return any(type, values);
    }

    /** Another spelling of a key is not that key: what is written under it is not found again. */
    private static Object spelled(String text, Object key) {
        if (!key.toString().equals(text)) {
            throw new IllegalArgumentException("another spelling of " + key);
        }
        return key;
    }

    /**
     * Keys of any type that can be serialized. Two of them are the same key if their serialized forms are equal.
     *
     * @param type of all keys
     * @param values reads keys that Java has serialized
     * @return the type of keys
     * @param <T> the type
     */
    public static <T> KeyType<T> any(Class<? super T> type, Values values) {
        return new KeyType<>(type, key -> anyText(key, values), text -> anyKey(text, values));
    }

    private static String anyText(Object key, Values values) {
        if (key instanceof String text) {
            return text.isEmpty() || text.charAt(0) != MARK ? text : MARK + "s" + text;
        } else if (key instanceof Integer) {
            return MARK + "i" + key;
        } else if (key instanceof Long) {
            return MARK + "l" + key;
        }
        Values.Dumped dumped = values.dump(key);
        return MARK + "o" + dumped.flags() + ":" + Base64.getEncoder().encodeToString(dumped.data());
    }

    private static Object anyKey(String text, Values values) {
        if (text.length() < 2 || text.charAt(0) != MARK) {
            return text;
        }
        String rest = text.substring(2);
        switch (text.charAt(1)) {
            case 's':
                return rest;
            case 'i':
                return Integer.valueOf(rest);
            case 'l':
                return Long.valueOf(rest);
            default:
                int colon = rest.indexOf(':');
                byte[] data = Base64.getDecoder().decode(rest.substring(colon + 1));
                try {
                    return values.load(data, Integer.parseInt(rest.substring(0, colon)));
                } catch (Values.LoadException why) {
                    throw new IllegalArgumentException("a key that does not load", why);
                }
        }
    }

    /**
     * @param key anything
     * @return whether it is of the type
     */
    public boolean accepts(Object key) {
        return type.isInstance(key);
    }

    /**
     * @param key a key of the type
     * @return its text
     */
    public String text(Object key) {
        return written.apply(type.cast(key));
    }

    /**
     * @param text the key of a row
     * @return the key; null if the row's key is of no such type
     */
    @SuppressWarnings("unchecked")
    public K key(String text) {
        try {
            Object key = read.apply(text);
            return type.isInstance(key) ? (K) key : null;
        } catch (IllegalArgumentException | IndexOutOfBoundsException why) {
            return null;
        }
    }
}
