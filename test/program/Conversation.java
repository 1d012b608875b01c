// SPDX-License-Identifier: GPL-2.0-only
// A JVM that serves itself over HTTP, while its own SIGSEGV handler finds null pointers.
import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;

public class Conversation {
    static int look(Object at) {
        return at.hashCode();
    }

    static int nulls() {
        int found = 0;
        for (int i = 0; i < 200_000; i++) {
            try {
                look(i % 2 == 0 ? null : "there");
            } catch (NullPointerException e) {
                found++;
            }
        }
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        byte[] content = new byte[1 << 20];
        new Random(1).nextBytes(content);
        var threads = Executors.newFixedThreadPool(4);
        var server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            byte[] sent = exchange.getRequestBody().readAllBytes();
            exchange.sendResponseHeaders(200, sent.length);
            exchange.getResponseBody().write(sent);
            exchange.close();
        });
        server.start();

        var counting = CompletableFuture.supplyAsync(Conversation::nulls);
        var client = HttpClient.newHttpClient();
        var to = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
        var request = HttpRequest.newBuilder(to).POST(HttpRequest.BodyPublishers.ofByteArray(content)).build();
        int right = 0;
        for (int i = 0; i < 20; i++) {
            var answer = client.send(request, HttpResponse.BodyHandlers.ofByteArray());
            right += Arrays.equals(answer.body(), content) ? 1 : 0;
        }
        System.out.println(right + " answers right, " + counting.get() + " nulls found");
        server.stop(0);
        threads.shutdown();
        System.exit(0);
    }
}
