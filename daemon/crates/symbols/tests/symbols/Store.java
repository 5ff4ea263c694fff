package org.example.store;

import java.util.*;

/** class Commented { void notThere() {} } */
@Config(value = {"a", "b"}, limit = 3)
public abstract class Store<K extends Comparable<K>> implements Closeable {
    private static final int[] SIZES = {1, 2, 3};
    private final Comparator<K> order = new Comparator<K>() {
        @Override
        public int compare(K a, K b) {
            return a.compareTo(b);
        }
    };
    private final Runnable task = () -> {
        System.out.println("} not the end {");
    };

    static {
        System.loadLibrary("store");
    }

    protected Store(int size) throws IOException {
        super(size);
        this.size = size;
    }

    public <T> List<T> list(Class<T> type, @Nullable String name) throws IOException, StoreException {
        char brace = '{';
        for (Map.Entry<K, T> e : entries()) {
            if (e != null) {
                synchronized (this) { add(e.getValue()); }
            }
        }
        String text = """
            class NotThere { "quoted" }
            """;
        return Collections.emptyList();
    }

    public Iterator<K> iterator() {
        return new Iterator<K>() {
            public boolean hasNext() {
                return true;
            }
            public K next() { return null; }
        };
    }

    void local() {
        record Pair(int a, int b) { int sum() { return a + b; } }
        class Inner { void run() {} }
        Object o = switch (size) { case 1 -> { yield new Pair(1, 2); } default -> null; };
    }

    abstract void open();

    enum Level {
        LOW(1) {
            @Override int weight() { return 1; }
        },
        HIGH {
            int weight() { return 2; }
        };

        Level(int n) { this.n = n; }
        Level() { this(0); }
        int weight() { return n + n + n; }
    }

    @interface Config { String[] value() default {}; int limit() default 1; }

    record Range(int low, int high) {
        Range {
            if (low > high) throw new IllegalArgumentException();
        }
    }
}
