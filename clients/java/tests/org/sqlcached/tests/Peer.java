package org.sqlcached.tests;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A program in a JVM of its own, which answers line by line. */
final class Peer implements AutoCloseable {
    private final Process process;
    private final PrintStream questions;
    private final BufferedReader answers;

    Peer(Class<?> program, Map<String, ?> properties) {
        List<String> command = new ArrayList<>(List.of(
                System.getProperty("java.home") + "/bin/java", "-XX:TieredStopAtLevel=1",
                "-cp", System.getProperty("java.class.path")));
        properties.forEach((name, value) -> command.add("-D" + name + "=" + value));
        command.add(program.getName());
        try {
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        } catch (IOException why) {
            throw new UncheckedIOException(why);
        }
        questions = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
        answers = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        line("ready");
    }

    private String line(String begin) {
        try {
            for (String line; (line = answers.readLine()) != null; ) {
                if (line.startsWith(begin)) {
                    return line.substring(begin.length());
                }
            }
        } catch (IOException why) {
            throw new UncheckedIOException(why);
        }
        throw new IllegalStateException("the other JVM ended");
    }

    /** Asks without waiting for the answer. */
    void tell(String question) {
        questions.println(question);
    }

    String answer() {
        return line("= ");
    }

    String ask(String question) {
        tell(question);
        return answer();
    }

    @Override
    public void close() {
        questions.close();
        process.destroy();
    }
}
