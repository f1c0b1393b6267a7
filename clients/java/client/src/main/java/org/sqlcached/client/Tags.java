package org.sqlcached.client;

import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;

/** Tags as commands and statements have them. */
final class Tags {
    /** The tag of places whose value's tags are known only when it is computed. Every removal by tag removes them. */
    static final String UNKNOWN = "sqlcached:computing";

    private Tags() {
    }

    /** The tags with commas between them; null if one cannot stand in a command. */
    static String words(Collection<String> tags) {
        for (String tag : tags) {
            if (tag.isEmpty() || !Keys.text(tag).equals(tag) || !isWord(tag)) {
                return null;
            }
        }
        return String.join(",", tags);
    }

    private static boolean isWord(String tag) {
        return tag.chars().noneMatch(letter -> letter <= ' ' || letter == 0x7f || letter == ',');
    }

    /** The tags as an array of SQL; null for none. */
    static List<String> texts(Collection<String> tags) {
        return tags.isEmpty() ? null : tags.stream().map(Keys::text).toList();
    }

    /** The tags of a removal. A value whose tags are not known yet is being computed from what was there before. */
    static List<String> removed(Collection<String> tags) {
        LinkedHashSet<String> all = new LinkedHashSet<>(tags.stream().map(Keys::text).toList());
        all.add(UNKNOWN);
        return List.copyOf(all);
    }
}
