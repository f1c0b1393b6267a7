package org.sqlcached.tests;

import org.junit.AfterClass;
import org.junit.BeforeClass;

/** Tests at a daemon that all of a class share. */
abstract class DaemonTest {
    static Daemon daemon;

    @BeforeClass
    public static void start() {
        daemon = new Daemon();
    }

    @AfterClass
    public static void stop() {
        daemon.close();
    }
}
