package org.sqlcached.tests;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** psql beside the program that is tested. */
final class Psql implements AutoCloseable {
    private static final String END = "it is done";

    private final Process process;
    private final PrintStream statements;
    private final BufferedReader answers;

    Psql(Daemon daemon) {
        String port = Integer.toString(daemon.sqlPort());
        try {
            process = new ProcessBuilder("psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", port, "-d", "sqlcached")
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
        } catch (IOException why) {
            throw new UncheckedIOException(why);
        }
        statements = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
        answers = process.inputReader(StandardCharsets.UTF_8);
    }

    /** Runs a statement; the lines of its answer. */
    List<String> run(String statement) {
        statements.println(statement + ";\n\\echo " + END);
        List<String> lines = new ArrayList<>();
        try {
            for (String line; (line = answers.readLine()) != null; ) {
                if (line.equals(END)) {
                    return lines;
                }
                lines.add(line);
            }
        } catch (IOException why) {
            throw new UncheckedIOException(why);
        }
        throw new IllegalStateException("psql has ended within " + statement);
    }

    @Override
    public void close() {
        statements.close();
        process.destroy();
    }
}
