package org.sqlcached.tests;

import java.io.File;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.jar.JarFile;

/** Runs JCache's own suite: all classes of its archive but those of annotations, for which a container is needed. */
public final class Tck {
    private Tck() {
    }

    /**
     * @param arguments none
     * @throws IOException if the archive cannot be read
     */
    public static void main(String[] arguments) throws IOException {
        String archive = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(each -> each.endsWith("cache-tests-1.1.1-tests.jar"))
                .findAny()
                .orElseThrow();
        Runner.run(names(archive).stream().map(Tck::found).toArray(Class<?>[]::new));
    }

    private static List<String> names(String archive) throws IOException {
        try (JarFile jar = new JarFile(archive)) {
            return jar.stream()
                    .map(each -> each.getName())
                    .filter(each -> each.endsWith("Test.class") && !each.contains("/annotation") && !each.contains("$"))
                    .map(each -> each.substring(0, each.length() - ".class".length()).replace('/', '.'))
                    .sorted()
                    .toList();
        }
    }

    private static Class<?> found(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException why) {
            throw new IllegalStateException(why);
        }
    }
}
