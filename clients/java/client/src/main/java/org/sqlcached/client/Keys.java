package org.sqlcached.client;

import java.nio.charset.StandardCharsets;
import java.util.Base64;

/**
 * Keys as the daemon has them: text. A NUL, an ESC and half a pair of surrogates, which are no text there, are written as
 * ESC and their number in four hexadecimal digits.
 */
public final class Keys {
    private static final char ESCAPE = '\u001b';

    private Keys() {
    }

    /**
     * @param key any text of Java
     * @return text of the daemon. Different keys have different texts, and what begins alike still does
     */
    public static String text(String key) {
        for (int at = 0; at < key.length(); at++) {
            if (isEscaped(key, at)) {
                return escaped(key);
            }
        }
        return key;
    }

    private static boolean isEscaped(String key, int at) {
        char letter = key.charAt(at);
        if (letter == 0 || letter == ESCAPE) {
            return true;
        }
        if (Character.isHighSurrogate(letter)) {
            return at + 1 == key.length() || !Character.isLowSurrogate(key.charAt(at + 1));
        }
        return Character.isLowSurrogate(letter) && (at == 0 || !Character.isHighSurrogate(key.charAt(at - 1)));
    }

    private static String escaped(String key) {
        StringBuilder out = new StringBuilder();
        for (int at = 0; at < key.length(); at++) {
            char letter = key.charAt(at);
            if (isEscaped(key, at)) {
                out.append(ESCAPE).append(String.format("%04x", (int) letter));
            } else {
                out.append(letter);
            }
        }
        return out.toString();
    }

    /**
     * @param text as {@link #text} made it
     * @return the key
     */
    public static String of(String text) {
        if (text.indexOf(ESCAPE) < 0) {
            return text;
        }
        StringBuilder out = new StringBuilder();
        for (int at = 0; at < text.length(); at++) {
            char letter = text.charAt(at);
            if (letter == ESCAPE && text.substring(at + 1).matches("(?s)[0-9a-f]{4}.*")) {
                letter = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                at += 4;
            }
            out.append(letter);
        }
        return out.toString();
    }

    /** The first text behind all those that begin with a prefix; null if there is none. */
    static String after(String prefix) {
        int end = prefix.length();
        while (end > 0) {
            int code = prefix.codePointBefore(end);
            end -= Character.charCount(code);
            if (code < Character.MAX_CODE_POINT) {
                // Halves of pairs are no letters.
                int next = code + 1 == Character.MIN_SURROGATE ? Character.MAX_SURROGATE + 1 : code + 1;
                return prefix.substring(0, end) + Character.toString(next);
            }
        }
        return null;
    }

    /** A key as meta commands send it; null if it is too long for them. */
    static Wire wire(String prefix, String key) {
        byte[] name = (prefix + text(key)).getBytes(StandardCharsets.UTF_8);
        if (name.length > Limits.KEY || key.isEmpty()) {
            return null;
        }
        for (byte each : name) {
            if (each >= 0 && each <= ' ' || each == 0x7f) {
                return new Wire(Base64.getEncoder().encode(name), true, name);
            }
        }
        return new Wire(name, false, name);
    }

    /** The name in a command, whether the flag b says that it is base64, and the key's bytes. */
    record Wire(byte[] name, boolean isBase64, byte[] key) {
        /** Puts the verb, the name and the flag. */
        Connection put(Connection to, byte[] verb) {
            to.put(verb).put(name);
            return isBase64 ? to.put(BASE64) : to;
        }
    }

    private static final byte[] BASE64 = {' ', 'b'};
}
