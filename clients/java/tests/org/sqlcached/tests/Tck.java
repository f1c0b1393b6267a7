package org.sqlcached.tests;

import java.io.File;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.jar.JarFile;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;

/** Runs JCache's own suite: all classes of its archive but those of annotations, for which a container is needed. */
public final class Tck {
    private Tck() {
    }

    /**
     * @param arguments none
     * @throws Exception if the archive cannot be read
     */
    public static void main(String[] arguments) throws Exception {
        String archive = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(each -> each.endsWith("cache-tests-1.1.1-tests.jar"))
                .findAny()
                .orElseThrow();
        Class<?>[] classes = names(archive).stream().map(Tck::found).toArray(Class<?>[]::new);
        long since = System.nanoTime();
        Result result = new JUnitCore().run(classes);
        result.getFailures().forEach(each -> System.out.println("FAILED " + each.getTestHeader() + "\n" + each.getTrimmedTrace()));
        System.out.printf(
                "%d classes, %d tests, %d failures, %d ignored, %d s%n",
                classes.length,
                result.getRunCount(),
                result.getFailureCount(),
                result.getIgnoreCount(),
                (System.nanoTime() - since) / 1_000_000_000);
        System.exit(result.wasSuccessful() ? 0 : 1);
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
