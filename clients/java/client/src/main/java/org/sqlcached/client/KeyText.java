package org.sqlcached.client;

import java.util.Arrays;
import java.util.Base64;
import java.util.UUID;
import java.util.stream.Collectors;

/** Keys of frameworks as SQL shows them. The type of a cache's keys is known, so 17 and "17" need not differ. */
public final class KeyText {
    private static final Values VALUES = new Values();

    private KeyText() {
    }

    /**
     * @param key a key
     * @return the key as it is shown, if that says all of it; several values as {@code (a,b)}; others serialized
     */
    public static String of(Object key) {
        if (key instanceof Object[] parts) {
            return Arrays.stream(parts)
                    .map(part -> of(part).replace("\\", "\\\\").replace(",", "\\,"))
                    .collect(Collectors.joining(",", "(", ")"));
        }
        boolean isPlain = key == null || key instanceof Number || key instanceof UUID || key instanceof CharSequence
                || key instanceof Boolean || key instanceof Character || key instanceof Enum<?>;
        return isPlain ? String.valueOf(key) : Base64.getEncoder().encodeToString(VALUES.dump(key).data());
    }
}
