package org.sqlcached.client;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * A row of a page.
 *
 * @param key its key
 * @param item its value
 */
public record Row(String key, Item item) {
    /** The row of a statement that selects body, _flags, cas and _stale. */
    static Item item(Map<String, Object> columns) {
        int flags = (int) number(columns.get("_flags"));
        long cas = Long.parseUnsignedLong(String.valueOf(columns.get("cas")));
        return new Item(bytes(columns.get("body")), flags, cas, false, number(columns.get("_stale")) != 0, 0, Item.NOT_KNOWN);
    }

    private static long number(Object value) {
        if (value instanceof Boolean on) {
            return on ? 1 : 0;
        }
        return value instanceof Number number ? number.longValue() : 0;
    }

    private static byte[] bytes(Object body) {
        if (body instanceof byte[] data) {
            return data;
        }
        return body == null ? new byte[0] : body.toString().getBytes(StandardCharsets.UTF_8);
    }

    /** The value of a column: legible, if it is text. */
    static Object body(byte[] data, int flags) {
        for (byte each : data) {
            if (each == 0) {
                return data;
            }
        }
        return flags != Values.BYTES && isText(data) ? new String(data, StandardCharsets.UTF_8) : data;
    }

    private static boolean isText(byte[] data) {
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(data));
            return true;
        } catch (CharacterCodingException why) {
            return false;
        }
    }
}
