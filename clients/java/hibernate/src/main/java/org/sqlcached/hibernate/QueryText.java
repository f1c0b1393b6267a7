package org.sqlcached.hibernate;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import org.sqlcached.client.Values;

/** The row's key of a query's answer: a sum of the statement and its parameters, since they may be of any length. */
final class QueryText {
    private static final Values VALUES = new Values();

    private QueryText() {
    }

    static String of(Object key) {
        try {
            byte[] sum = MessageDigest.getInstance("SHA-256").digest(VALUES.dump(key).data());
            return HexFormat.of().formatHex(sum);
        } catch (NoSuchAlgorithmException why) {
            // Each Java has it.
            throw new IllegalStateException(why);
        }
    }
}
