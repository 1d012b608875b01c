// SPDX-License-Identifier: GPL-2.0-only
// A JVM as an HTTP server, and one as its client:
//
//     java Http.java serve PORT
//     java Http.java ask URL TIMES
//
// The server answers with what it was sent. The client sends TIMES requests at once through one
// selector, by HTTP/2's upgrade as well as HTTP/1.1, and says how many answers were right.
import com.sun.net.httpserver.HttpServer;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;

public class Http {
    static void serve(int port) throws Exception {
        var server = HttpServer.create(new InetSocketAddress(port), 100);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            byte[] sent = exchange.getRequestBody().readAllBytes();
            exchange.sendResponseHeaders(200, sent.length);
            exchange.getResponseBody().write(sent);
            exchange.close();
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            server.stop(0);
            System.out.println("stopped");
        }));
        server.start();
        System.out.println("serves");
    }

    static int ask(URI to, int times, HttpClient.Version version) {
        byte[] content = new byte[300_000];
        new Random(1).nextBytes(content);
        var client = HttpClient.newBuilder().version(version).build();
        var body = HttpRequest.BodyPublishers.ofByteArray(content);
        var request = HttpRequest.newBuilder(to).POST(body).build();
        var answers = new ArrayList<CompletableFuture<Boolean>>();
        for (int i = 0; i < times; i++)
            answers.add(client.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray())
                            .thenApply(a -> Arrays.equals(a.body(), content)));
        return (int) answers.stream().filter(CompletableFuture::join).count();
    }

    static String refused(URI to) throws Exception {
        try {
            var request = HttpRequest.newBuilder(new URI("http", null, to.getHost(), 1, "/", null, null));
            HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.discarding());
            return "answered";
        } catch (ConnectException e) {
            return "refused";
        }
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("serve")) {
            serve(Integer.parseInt(arguments[1]));
            return;
        }
        var to = URI.create(arguments[1]);
        int times = Integer.parseInt(arguments[2]);
        for (var version : HttpClient.Version.values())
            System.out.println(version + ": " + ask(to, times, version));
        System.out.println(refused(to));
    }
}
