package shop;

import io.quarkus.runtime.QuarkusApplication;
import io.quarkus.runtime.annotations.QuarkusMain;

/** Builds, and does nothing. */
@QuarkusMain
public class Offers implements QuarkusApplication {
    @Override
    public int run(String... arguments) {
        return 0;
    }
}
