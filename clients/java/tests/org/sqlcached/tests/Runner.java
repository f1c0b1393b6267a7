package org.sqlcached.tests;

import java.util.Arrays;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.notification.RunListener;

/** Runs tests, and says last which of them failed: whoever reads a long output sees its end. */
public final class Runner {
    private Runner() {
    }

    /**
     * @param names classes with tests
     * @throws ClassNotFoundException if one is not there
     */
    public static void main(String[] names) throws ClassNotFoundException {
        Class<?>[] classes = new Class<?>[names.length];
        for (int at = 0; at < names.length; at++) {
            classes[at] = Class.forName(names[at]);
        }
        run(classes);
    }

    /**
     * Runs tests, and ends the program: with 0 if none failed.
     *
     * @param classes with tests
     */
    static void run(Class<?>... classes) {
        // JCache's suite logs a line for each of its connections.
        Logger.getLogger("").setLevel(Level.WARNING);
        long since = System.nanoTime();
        Running running = new Running();
        Runtime.getRuntime().addShutdownHook(new Thread(running::tell));
        JUnitCore core = new JUnitCore();
        core.addListener(running);
        Result result = core.run(classes);
        result.getFailures().forEach(each -> System.out.println(each.getTestHeader() + "\n" + each.getTrimmedTrace()));
        System.out.printf(
                "%d classes, %d tests, %d failures, %d ignored, %d s%n",
                classes.length,
                result.getRunCount(),
                result.getFailureCount(),
                result.getIgnoreCount(),
                (System.nanoTime() - since) / 1_000_000_000);
        System.out.flush();
        result.getFailures().forEach(each -> System.err.println("FAILED " + each.getTestHeader() + ": " + first(each.getMessage())));
        System.exit(result.wasSuccessful() ? 0 : 1);
    }

    private static String first(String message) {
        return message == null ? "" : message.lines().findFirst().orElse("");
    }

    /** The test that runs. If the program is ended meanwhile, because it took too long, it is said where it stood. */
    private static final class Running extends RunListener {
        private volatile Description test;

        @Override
        public void testStarted(Description started) {
            test = started;
        }

        @Override
        public void testFinished(Description finished) {
            test = null;
        }

        void tell() {
            if (test == null) {
                return;
            }
            for (Map.Entry<Thread, StackTraceElement[]> each : Thread.getAllStackTraces().entrySet()) {
                System.err.println(each.getKey());
                Arrays.stream(each.getValue()).forEach(line -> System.err.println("    " + line));
            }
            System.err.println("ENDED within " + test);
        }
    }
}
