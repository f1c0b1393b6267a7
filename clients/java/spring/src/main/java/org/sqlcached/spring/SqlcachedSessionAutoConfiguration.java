package org.sqlcached.spring;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.autoconfigure.session.SessionAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.session.SessionRepository;
import org.springframework.session.config.annotation.web.http.EnableSpringHttpSession;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;

/** Sessions of web applications in sqlcached, where Spring Session is on the class path. */
@AutoConfiguration(after = SqlcachedAutoConfiguration.class, before = SessionAutoConfiguration.class)
@ConditionalOnClass(SessionRepository.class)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnMissingBean(SessionRepository.class)
@EnableSpringHttpSession
public class SqlcachedSessionAutoConfiguration {
    private static final String TABLE = "spring_session";

    /** Spring makes it. */
    public SqlcachedSessionAutoConfiguration() {
    }

    /**
     * @param client the daemon
     * @param values how attributes become bytes
     * @param properties the settings
     * @param environment has Spring's own settings of the timeout
     * @return the sessions
     */
    @Bean
    SqlcachedSessionRepository sessionRepository(
            Client client, Values values, SqlcachedProperties properties, Environment environment) {
        String name = Objects.requireNonNullElse(properties.sessions(), TABLE);
        // A flush_all of another client is no reason to log all users out.
        Map<String, Object> options = new HashMap<>(Map.of("flush", false));
        options.putAll(properties.table(name));
        Table table = new Table(client, new Definition(name, options));
        Duration timeout = environment.getProperty("server.servlet.session.timeout", Duration.class, Duration.ofMinutes(30));
        return new SqlcachedSessionRepository(
                new Loading(table, values), environment.getProperty("spring.session.timeout", Duration.class, timeout));
    }
}
