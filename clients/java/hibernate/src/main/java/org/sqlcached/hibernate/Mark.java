package org.sqlcached.hibernate;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.sqlcached.client.Item;

/**
 * What stands in the row of a value that transactions change: who locks it, or when the last of them was over. SQL shows
 * it as text.
 *
 * @param locks the transactions that change the value
 * @param isShared whether there was more than one at a time: which of them was last is not known then
 * @param released when the last one was over, by Hibernate's clock; 0 while there are locks
 */
record Mark(List<String> locks, boolean isShared, long released) {
    /** Says that the row is no value. The flags of values are below. */
    private static final int FLAG = 0x10000;
    private static final String LOCKED = "locked";
    private static final String SHARED = "shared";
    private static final String RELEASED = "released";

    static Mark lockedBy(String lock) {
        return new Mark(List.of(lock), false, 0);
    }

    static Mark released(long when) {
        return new Mark(List.of(), false, when);
    }

    static boolean isOne(Item item) {
        return (item.flags() & FLAG) != 0;
    }

    /** The mark of a row; null if the row is a value, or a place, or missing. */
    static Mark of(Item item) {
        if (item == null || !isOne(item)) {
            return null;
        }
        List<String> words = List.of(new String(item.data(), StandardCharsets.UTF_8).split(" "));
        if (words.get(0).equals(RELEASED)) {
            return released(Long.parseLong(words.get(1)));
        }
        return new Mark(words.subList(1, words.size()), words.get(0).equals(SHARED), 0);
    }

    boolean isLocked() {
        return !locks.isEmpty();
    }

    Mark with(String lock) {
        List<String> all = new ArrayList<>(locks);
        all.add(lock);
        return new Mark(all, isShared || isLocked(), 0);
    }

    /** Without a lock that ended now. */
    Mark without(String lock, long now) {
        List<String> rest = locks.stream().filter(each -> !each.equals(lock)).toList();
        return rest.isEmpty() ? released(now) : new Mark(rest, isShared, 0);
    }

    byte[] data() {
        String word = isShared ? SHARED : LOCKED;
        String text = isLocked() ? word + " " + String.join(" ", locks) : RELEASED + " " + released;
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static int flags() {
        return FLAG;
    }
}
