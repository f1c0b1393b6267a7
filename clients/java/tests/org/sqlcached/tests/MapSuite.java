package org.sqlcached.tests;

import com.google.common.collect.testing.ConcurrentMapTestSuiteBuilder;
import com.google.common.collect.testing.TestStringMapGenerator;
import com.google.common.collect.testing.features.CollectionFeature;
import com.google.common.collect.testing.features.CollectionSize;
import com.google.common.collect.testing.features.MapFeature;
import java.util.Map;
import junit.framework.Test;
import junit.framework.TestSuite;
import org.sqlcached.client.Client;
import org.sqlcached.client.Options;
import org.sqlcached.map.CachedMap;

/** Guava's suite for maps that many threads use. */
public final class MapSuite {
    private MapSuite() {
    }

    /** @return the suite, at the daemon that the system's properties say, be it read in shared memory or not */
    public static Test suite() {
        Client client = new Client(Options.named(name -> System.getProperty("sqlcached." + name)));
        CachedMap<String, String> map = CachedMap.of(client, "guava");
        TestSuite all = new TestSuite();
        all.addTest(ConcurrentMapTestSuiteBuilder.using(new TestStringMapGenerator() {
                    @Override
                    protected Map<String, String> create(Map.Entry<String, String>[] entries) {
                        map.clear();
                        for (Map.Entry<String, String> each : entries) {
                            map.put(each.getKey(), each.getValue());
                        }
                        return map;
                    }
                })
                .named("CachedMap")
                .withFeatures(CollectionSize.ANY, MapFeature.GENERAL_PURPOSE, CollectionFeature.SUPPORTS_ITERATOR_REMOVE)
                .createTestSuite());
        return all;
    }
}
