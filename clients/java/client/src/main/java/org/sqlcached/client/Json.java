package org.sqlcached.client;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;

/** JSON as statements send and return it: flat rows, and parameters. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** The parameters of a statement as an array. Lists become arrays of SQL, bytes a BYTEA. */
    static byte[] parameters(Object... values) {
        StringBuilder out = new StringBuilder("[");
        for (Object value : values) {
            if (out.length() > 1) {
                out.append(',');
            }
            parameter(out, value);
        }
        return out.append(']').toString().getBytes(StandardCharsets.UTF_8);
    }

    private static void parameter(StringBuilder out, Object value) {
        if (value instanceof byte[] data) {
            out.append("{\"base64\":\"").append(Base64.getEncoder().encodeToString(data)).append("\"}");
        } else if (value instanceof Iterable<?> list) {
            StringBuilder inner = new StringBuilder("[");
            for (Object each : list) {
                if (inner.length() > 1) {
                    inner.append(',');
                }
                plain(inner, each);
            }
            string(out, inner.append(']').toString());
        } else {
            plain(out, value);
        }
    }

    private static void plain(StringBuilder out, Object value) {
        if (value == null || value instanceof Boolean || isNumber(value)) {
            out.append(value);
        } else {
            string(out, value.toString());
        }
    }

    private static boolean isNumber(Object value) {
        if (value instanceof Double || value instanceof Float) {
            double number = ((Number) value).doubleValue();
            return !Double.isNaN(number) && !Double.isInfinite(number);
        }
        return value instanceof Integer
                || value instanceof Long
                || value instanceof Short
                || value instanceof Byte
                || value instanceof BigInteger
                || value instanceof BigDecimal;
    }

    private static void string(StringBuilder out, String value) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char letter = value.charAt(i);
            if (letter == '"' || letter == '\\') {
                out.append('\\').append(letter);
            } else if (letter < 0x20) {
                out.append(String.format("\\u%04x", (int) letter));
            } else {
                out.append(letter);
            }
        }
        out.append('"');
    }

    /** A row: its columns in their order. Numbers are Long or Double (BigInteger where they are longer), bytes are bytes. */
    static Map<String, Object> row(String line) {
        Json json = new Json(line);
        Map<String, Object> row = json.object();
        json.blanks();
        if (json.at != line.length()) {
            throw json.wrong();
        }
        return row;
    }

    private Map<String, Object> object() {
        Map<String, Object> found = new LinkedHashMap<>();
        expect('{');
        if (next() == '}') {
            at++;
            return found;
        }
        while (true) {
            expect('"');
            String name = string();
            expect(':');
            found.put(name, value());
            char letter = next();
            at++;
            if (letter == '}') {
                return found;
            }
            if (letter != ',') {
                throw wrong();
            }
        }
    }

    private Object value() {
        switch (next()) {
            case '"':
                at++;
                return string();
            case '{':
                Map<String, Object> inner = object();
                if (inner.size() == 1 && inner.get("base64") instanceof String data) {
                    return Base64.getDecoder().decode(data);
                }
                throw wrong();
            case 'n':
                return word("null", null);
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            default:
                return number();
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong();
        }
        at += word.length();
        return value;
    }

    private Object number() {
        int start = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String digits = text.substring(start, at);
        if (!digits.matches("-?\\d+")) {
            return Double.valueOf(digits);
        }
        return digits.length() < 19 ? (Object) Long.valueOf(digits) : whole(new BigInteger(digits));
    }

    private static Object whole(BigInteger number) {
        return number.bitLength() < 64 ? (Object) number.longValue() : number;
    }

    private String string() {
        int plain = at;
        while (text.charAt(at) != '"' && text.charAt(at) != '\\') {
            at++;
        }
        if (text.charAt(at) == '"') {
            return text.substring(plain, at++);
        }
        StringBuilder out = new StringBuilder(text.substring(plain, at));
        while (true) {
            char letter = text.charAt(at++);
            if (letter == '"') {
                return out.toString();
            }
            out.append(letter == '\\' ? escaped() : letter);
        }
    }

    private char escaped() {
        char letter = text.charAt(at++);
        if (letter == 'u') {
            at += 4;
            return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        }
        int place = "bfnrt".indexOf(letter);
        return place < 0 ? letter : "\b\f\n\r\t".charAt(place);
    }

    private char next() {
        blanks();
        if (at >= text.length()) {
            throw wrong();
        }
        return text.charAt(at);
    }

    private void blanks() {
        while (at < text.length() && text.charAt(at) <= ' ') {
            at++;
        }
    }

    private void expect(char letter) {
        if (next() != letter) {
            throw wrong();
        }
        at++;
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("a row that is no JSON");
    }
}
