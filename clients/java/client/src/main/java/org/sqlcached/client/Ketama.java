package org.sqlcached.client;

import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Which of several daemons has a key: by ketama, with the points of spymemcached. */
final class Ketama {
    /** Four points of each digest make 160 of each daemon. */
    private static final int DIGESTS = 40;

    private final TreeMap<Long, Integer> points = new TreeMap<>();

    Ketama(List<String> locations) {
        for (int place = 0; place < locations.size(); place++) {
            String name = name(locations.get(place));
            for (int each = 0; each < DIGESTS; each++) {
                byte[] digest = digest((name + "-" + each).getBytes(StandardCharsets.UTF_8));
                for (int part = 0; part < 4; part++) {
                    points.put(point(digest, part), place);
                }
            }
        }
    }

    /** As Java shows the address: with the host's name, if it was given by it. */
    private static String name(String location) {
        int colon = location.lastIndexOf(':');
        if (colon < 1 || location.startsWith("/")) {
            return location;
        }
        int port = Integer.parseInt(location.substring(colon + 1));
        String shown = new InetSocketAddress(location.substring(0, colon), port).toString();
        return shown.startsWith("/") ? shown.substring(1) : shown;
    }

    private static long point(byte[] digest, int part) {
        return (digest[3 + part * 4] & 0xFFL) << 24
                | (digest[2 + part * 4] & 0xFFL) << 16
                | (digest[1 + part * 4] & 0xFFL) << 8
                | digest[part * 4] & 0xFFL;
    }

    int place(byte[] key) {
        Map.Entry<Long, Integer> found = points.ceilingEntry(point(digest(key), 0));
        return (found == null ? points.firstEntry() : found).getValue();
    }

    private static byte[] digest(byte[] data) {
        try {
            return MessageDigest.getInstance("MD5").digest(data);
        } catch (NoSuchAlgorithmException why) {
            throw new IllegalStateException(why);
        }
    }
}
