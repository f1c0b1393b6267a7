import java.util.List;
import java.util.Map;

/** One cache by its client. What it cannot do it refuses with an {@link UnsupportedOperationException}. */
abstract class Peer {
    final String name;

    /** The server's process. */
    final String process;

    /** The tag that is removed next. */
    int tag;

    Peer(String name, String process) {
        this.name = name;
        this.process = process;
    }

    Object get(String key) {
        throw new UnsupportedOperationException();
    }

    void put(String key, byte[] value) {
        throw new UnsupportedOperationException();
    }

    Map<String, ?> getAll(List<String> keys) {
        throw new UnsupportedOperationException();
    }

    /** A value whose copy is in this JVM. */
    Object near(String key) {
        throw new UnsupportedOperationException();
    }

    void putNear(String key, byte[] value) {
        throw new UnsupportedOperationException();
    }

    void putTagged(String key, byte[] value, String tag) {
        throw new UnsupportedOperationException();
    }

    /** Removes the values of a tag, of which there are so many. */
    void removeTag(String tag, int count) {
        throw new UnsupportedOperationException();
    }

    static void check(boolean holds) {
        if (!holds) {
            throw new IllegalStateException("a value is missing");
        }
    }
}
