package org.sqlcached.hibernate;

import java.util.List;
import org.sqlcached.client.KeyText;

/**
 * The key of an entity, a collection or a natural id, as SQL shows it: {@code shop.Product#17}.
 *
 * @param id what it is made of
 * @param text the row's key
 * @param tags of the row: the identifier, and the name of the entity or of the collection
 */
record RegionKey(Object id, String text, List<String> tags) {
    /** The key of something that has this form in the cache, and belongs to a tenant or to none. */
    static RegionKey of(String name, Object id, Object disassembled, String tenant) {
        String text = KeyText.of(disassembled);
        String whole = name + "#" + text + (tenant == null ? "" : "@" + tenant);
        return new RegionKey(id, whole, text.length() <= Limits.TAG ? List.of(text, name) : List.of(name));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof RegionKey key && text.equals(key.text);
    }

    @Override
    public int hashCode() {
        return text.hashCode();
    }

    @Override
    public String toString() {
        return text;
    }
}
