// SPDX-License-Identifier: GPL-2.0-only
/* Files that tell of the network and change it: /proc/net, /proc/sys/net, /sys/class/net. And
 * the rings of packet sockets. */
#include "call.h"

#include <dirent.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define TTL  "/proc/sys/net/ipv4/ip_default_ttl"
#define MTU  "/sys/class/net/lo/mtu"
#define LINK "/sys/class/net/lo"

static const char *const paths[] = {
	"/proc/net",
	"/proc/net/",
	"/proc/net/dev",
	"/proc/self/net/dev",
	"/proc/thread-self/net/dev",
	"/proc/net/no_such_file",
	"/proc/net/dev/below",
	"/proc/sys/net",
	"/proc/sys/net/ipv4",
	TTL,
	TTL "/",
	"/proc/sys/net/no_such_folder/file",
	LINK,
	LINK "/",
	MTU,
	"/sys/class/net/no_such_interface",
	"/sys/devices/virtual/net/lo/mtu",
	"/proc/network",
	"",
};

static void show_stat(const char *call, const char *path, int ret, const struct stat *st)
{
	TELL(ret, "%s(%s)", call, path);
	if (!ret)
		printf("mode %o, %d links, of %d, size %d, device %d\n", st->st_mode,
		       S_ISDIR(st->st_mode) ? 0 : (int)st->st_nlink, st->st_uid == geteuid(),
		       S_ISDIR(st->st_mode) ? 0 : (int)st->st_size, (int)st->st_rdev);
}

static void show_path(const char *path)
{
	struct statx x;
	struct stat st;
	char text[256];
	long n;

	memset(&st, 0, sizeof(st));
	show_stat("stat", path, stat(path, &st), &st);
	show_stat("lstat", path, lstat(path, &st), &st);
	show_stat("stat64", path, stat64(path, (void *)&st), &st);
	show_stat("lstat64", path, lstat64(path, (void *)&st), &st);
	show_stat("fstatat", path, fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW), &st);
	show_stat("fstatat64", path, fstatat64(AT_FDCWD, path, (void *)&st, 0), &st);
	if (!TELL(statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &x), "statx(%s)", path))
		printf("mode %o\n", x.stx_mode);
	TELL(access(path, F_OK), "access(%s)", path);
	TELL(access(path, R_OK | X_OK), "access(%s, read and execute)", path);
	TELL(euidaccess(path, R_OK), "euidaccess(%s)", path);
	TELL(eaccess(path, W_OK), "eaccess(%s)", path);
	TELL(faccessat(AT_FDCWD, path, R_OK, 0), "faccessat(%s)", path);
	if (*path && !lstat(path, &st)) {
		TELL(getxattr(path, "system.posix_acl_access", text, 9), "getxattr(%s)", path);
		TELL(lgetxattr(path, "system.posix_acl_access", text, 9), "lgetxattr(%s)", path);
		TELL(listxattr(path, text, sizeof(text)), "listxattr(%s)", path);
		TELL(llistxattr(path, text, sizeof(text)), "llistxattr(%s)", path);
	}
	n = TELL(readlink(path, text, sizeof(text)), "readlink(%s)", path);
	if (n > 0)
		printf("%.*s\n", (int)n, text);
	n = TELL(readlinkat(AT_FDCWD, path, text, 6), "readlinkat(%s)", path);
	if (n > 0)
		printf("%.*s\n", (int)n, text);
}

/* A sysctl, read and written in every way. */
static void show_file(void)
{
	char text[64] = "", buf[8] = "";
	struct statx x;
	struct stat st;
	FILE *f;
	int fd;

	fd = open(TTL, O_RDWR);
	SHOW(fcntl(fd, F_GETFD));
	SHOW(fcntl(fd, F_GETFL) & O_ACCMODE);
	SHOW(write(fd, "63\n", 3));
	SHOW(lseek(fd, 0, SEEK_SET));
	SHOW(read(fd, text, sizeof(text)));
	puts(text);
	SHOW(read(fd, text, sizeof(text)));
	SHOW(lseek64(fd, 1, SEEK_SET));
	SHOW(lseek(fd, -5, SEEK_SET));
	SHOW(lseek(fd, 0, 99));
	SHOW(pread(fd, buf, 1, 0));
	show_stat("fstat", "the file", fstat(fd, &st), &st);
	show_stat("fstat64", "the file", fstat64(fd, (void *)&st), &st);
	show_stat("fstatat", "the file and no path", fstatat(fd, "", &st, AT_EMPTY_PATH), &st);
	if (!TELL(statx(fd, "", AT_EMPTY_PATH, STATX_MODE, &x), "statx(the file and no path)"))
		printf("mode %o\n", x.stx_mode);
	SHOW(openat(fd, "below", O_RDONLY));
	SHOW(fdopendir(fd) != NULL);
	SHOW(close(fd));
	SHOW(lseek(fd, 0, SEEK_SET));
	f = fopen(TTL, "r+e");
	SHOW(fscanf(f, "%3s", buf));
	puts(buf);
	SHOW(fseek(f, 0, SEEK_SET));
	SHOW(fputs("62\n", f) >= 0);
	SHOW(fclose(f));
	f = fopen64(TTL, "w");
	SHOW(fputs("61\n", f) >= 0);
	SHOW(fclose(f));
	f = fopen(TTL, "w");
	SHOW(fputs("nonsense\n", f) >= 0);
	errno = 0;
	SHOW(fclose(f));
	f = fopen(TTL, "r");
	SHOW(fgets(buf, sizeof(buf), f) != NULL);
	puts(buf);
	SHOW(fclose(f));
	SHOW(fopen("/proc/net/no_such_file", "r") != NULL);
	fd = (int)syscall(SYS_openat, AT_FDCWD, TTL, O_RDONLY);
	SHOW(syscall(SYS_read, fd, text, 2));
	SHOW(syscall(SYS_lseek, fd, 0, SEEK_SET));
	SHOW(syscall(SYS_fstat, fd, &st));
	printf("mode %o\n", st.st_mode);
	SHOW(syscall(SYS_close, fd));
	SHOW(open("/proc/net/dev", O_WRONLY | O_DIRECTORY));
	SHOW(open(LINK, O_RDONLY | O_NOFOLLOW));
	SHOW(open("/proc/net/created", O_WRONLY | O_CREAT, 0644));
	f = fopen("/proc/net/dev", "r");
	MUST(f);
	for (int i = 0; i < 2 && fgets(text, sizeof(text), f); i++)
		printf("%.20s\n", text);
	fclose(f);
}

CASE(live_files)
{
	char *edge, text[64] = "";
	struct stat st;
	int fd, socket_fd, saved;

	for (unsigned int i = 0; i < COUNT(paths); i++)
		show_path(paths[i]);
	show_file();
	/* A path that ends where memory ends. */
	edge = before_the_edge(sizeof(TTL));
	memcpy(edge, TTL, sizeof(TTL));
	fd = open(edge, O_RDONLY);
	SHOW(read(fd, text, sizeof(text)));
	close(fd);
	memcpy(before_the_edge(9), "/proc/net", 9);
	SHOW(open(before_the_edge(9), O_RDONLY));
	EACH_BAD_POINTER(p)
	{
		if (p->at && strcmp(p->name, "read only")) {
			TELL(open(p->at, O_RDONLY), "open(%s)", p->name);
			TELL(stat(p->at, &st), "stat(%s)", p->name);
			TELL(lstat(p->at, &st), "lstat(%s)", p->name);
			TELL(fstatat(AT_FDCWD, p->at, &st, 0), "fstatat(%s)", p->name);
			TELL(access(p->at, F_OK), "access(%s)", p->name);
			TELL(faccessat(AT_FDCWD, p->at, F_OK, 0), "faccessat(%s)", p->name);
			TELL(readlink(p->at, text, 9), "readlink(%s)", p->name);
			TELL(readlinkat(AT_FDCWD, p->at, text, 9), "readlinkat(%s)", p->name);
		}
		TELL(stat(TTL, p->at), "stat(, %s)", p->name);
		TELL(statx(AT_FDCWD, TTL, 0, 0, p->at), "statx(, %s)", p->name);
		TELL(readlink(LINK, p->at, 9), "readlink(, %s)", p->name);
	}
	/* Standard output that is a file of the stack. */
	saved = dup(1);
	fflush(stdout);
	fd = open(TTL, O_WRONLY);
	dup2(fd, 1);
	close(fd);
	printf("60\n");
	fflush(stdout);
	dup2(saved, 1);
	close(saved);
	fd = open(TTL, O_RDONLY);
	SHOW(read(fd, text, sizeof(text)));
	printf("%.2s\n", text);
	close(fd);
	/* A socket is none. */
	socket_fd = socket(AF_INET, SOCK_STREAM, 0);
	SHOW(lseek(socket_fd, 0, SEEK_SET));
	SHOW(fstat(socket_fd, &st));
	printf("mode %o\n", st.st_mode);
	SHOW(fdopendir(socket_fd) != NULL);
	SHOW(openat(socket_fd, "x", O_RDONLY));
}

/* Whether a folder lists a name, and under what type. */
static void show_entry(DIR *d, const char *name)
{
	int found = 0, type = 0;
	struct dirent *e;

	rewinddir(d);
	while ((e = readdir(d)))
		if (!strcmp(e->d_name, name)) {
			found++;
			type = e->d_type;
		}
	printf("%s: %d times, type %d, errno %d\n", name, found, type, errno);
}

CASE(live_folders)
{
	struct dirent64 *e64;
	char records[4096], name[256], text[16] = "";
	struct stat st;
	long here;
	int fd;
	DIR *d;

	SHOW(opendir("/proc/net/no_such_folder") != NULL);
	SHOW(opendir(TTL) != NULL);
	SHOW(opendir("/proc/network") != NULL);
	d = opendir("/proc/sys/net/ipv4");
	MUST(d);
	errno = 0;
	show_entry(d, ".");
	show_entry(d, "..");
	show_entry(d, "conf");
	show_entry(d, "ip_default_ttl");
	show_entry(d, "no_such_file");
	SHOW(fcntl(dirfd(d), F_GETFD));
	SHOW(fstat(dirfd(d), &st));
	printf("mode %o\n", st.st_mode);
	/* Where it was, it is again. */
	rewinddir(d);
	for (int i = 0; i < 5; i++)
		MUST(readdir64(d));
	here = telldir(d);
	e64 = readdir64(d);
	MUST(e64);
	snprintf(name, sizeof(name), "%s", e64->d_name);
	MUST(readdir64(d));
	seekdir(d, here);
	e64 = readdir64(d);
	MUST(e64);
	SHOW(strcmp(e64->d_name, name));
	/* What is in it, by its descriptor. */
	fd = openat(dirfd(d), "ip_default_ttl", O_RDONLY);
	SHOW(read(fd, text, sizeof(text)) > 1);
	SHOW(close(fd));
	SHOW(fstatat(dirfd(d), "conf", &st, 0));
	SHOW(faccessat(dirfd(d), "conf/lo", F_OK, 0));
	SHOW(readlinkat(dirfd(d), "conf", name, 9));
	SHOW(openat(dirfd(d), "no_such_file", O_RDONLY));
	SHOW(closedir(d));
	fd = open("/sys/class/net/lo/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	SHOW(getdents64(fd, records, sizeof(records)) > 0);
	SHOW(getdents64(fd, records, 1) < 0);
	d = fdopendir(fd);
	errno = 0;
	show_entry(d, "mtu");
	SHOW(dirfd(d) == fd);
	SHOW(closedir(d));
	SHOW(close(fd));
	d = opendir("/sys/class/net");
	errno = 0;
	show_entry(d, "lo");
	SHOW(closedir(d));
	d = opendir("/proc/net");
	errno = 0;
	show_entry(d, "tcp");
	show_entry(d, "dev");
	SHOW(closedir(d));
	/* A folder of the host's is read as ever. */
	d = opendir("/etc");
	errno = 0;
	show_entry(d, "passwd");
	here = telldir(d);
	seekdir(d, here);
	SHOW(readdir(d) == NULL);
	SHOW(dirfd(d) >= 0);
	SHOW(closedir(d));
	fd = open("/etc", O_RDONLY | O_DIRECTORY);
	d = fdopendir(fd);
	SHOW(closedir(d));
}

/* ---- rings -------------------------------------------------------------------------- */

#define BLOCK  65536
#define BLOCKS 4
#define FRAME  2048

static int packet_socket(int version)
{
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	struct sockaddr_ll lo = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex("lo"),
	};

	MUST(fd >= 0 && !bind(fd, (void *)&lo, sizeof(lo)));
	SHOW(setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)));
	return fd;
}

static void send_one(const char *text)
{
	struct sockaddr_in to = loopback(9);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	MUST(sendto(fd, text, strlen(text), 0, (void *)&to, sizeof(to)) > 0);
	close(fd);
}

static void show_frame(const struct tpacket2_hdr *h)
{
	const char *data = (const char *)h + h->tp_mac;

	printf("length %u of %u, payload %.*s\n", h->tp_snaplen, h->tp_len, 5,
	       data + ETH_HLEN + 20 + 8);
}

CASE(ring_mapped)
{
	struct tpacket_req request = { BLOCK, BLOCKS, FRAME, BLOCKS * (BLOCK / FRAME) };
	struct tpacket_req3 request3 = {
		.tp_block_size = BLOCK,
		.tp_block_nr = BLOCKS,
		.tp_frame_size = FRAME,
		.tp_frame_nr = BLOCKS * (BLOCK / FRAME),
		.tp_retire_blk_tov = 10,
	};
	const size_t all = (size_t)BLOCK * BLOCKS;
	struct tpacket2_hdr *h;
	struct tpacket_block_desc *b;
	struct pollfd p;
	char *ring;
	int fd;

	fd = socket(AF_INET, SOCK_DGRAM, 0);
	SHOW(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	printf("%s\n", strerrorname_np(errno));
	SHOW(mmap64(NULL, 4096, PROT_READ, MAP_SHARED, 4711, 0) == MAP_FAILED);
	printf("%s\n", strerrorname_np(errno));
	fd = packet_socket(TPACKET_V2);
	TELL((long)mmap(NULL, all, PROT_READ, MAP_SHARED, fd, 0), "mmap(without a ring)");
	SHOW(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)));
	TELL((long)mmap(NULL, all / 2, PROT_READ, MAP_SHARED, fd, 0), "mmap(half)");
	TELL((long)mmap(NULL, all * 2, PROT_READ, MAP_SHARED, fd, 0), "mmap(twice)");
	TELL((long)mmap(NULL, all, PROT_READ, MAP_SHARED, fd, BLOCK), "mmap(from its middle)");
	ring = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	SHOW(ring == MAP_FAILED);
	SHOW(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)));
	/* More frames than a block holds: each comes where the one before it ended. */
	p = (struct pollfd){ .fd = fd, .events = POLLIN };
	h = (void *)ring;
	for (int i = 0; i < 3 * BLOCK / FRAME; i++) {
		char text[16];

		snprintf(text, sizeof(text), "no%03d", i);
		send_one(text);
		/* Going out and coming in; and an answer that nobody listens there. */
		for (int copy = 0; copy < 4; copy++) {
			MUST(poll(&p, 1, 20000) == 1);
			MUST(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER);
			if (copy < 2 && (i < 2 || i > 3 * BLOCK / FRAME - 3))
				show_frame(h);
			__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
			h = (void *)((char *)h + FRAME);
			if ((char *)h == ring + all)
				h = (void *)ring;
		}
	}
	SHOW(poll(&p, 1, 0));
	SHOW(munmap(ring, all));
	/* Now it can be another one, which outlives its socket. */
	SHOW(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &(struct tpacket_req){ 0 },
			sizeof(request)));
	request.tp_block_nr /= 2;
	request.tp_frame_nr /= 2;
	SHOW(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)));
	ring = mmap(NULL, all / 2, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	SHOW(ring == MAP_FAILED);
	send_one("last");
	SHOW(poll(&p, 1, 20000));
	show_frame((void *)ring);
	SHOW(close(fd));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	show_frame((void *)ring);
	SHOW(munmap(ring, all / 2));
	SHOW(close(fd));

	/* Where the program says, and for reading only. */
	fd = packet_socket(TPACKET_V3);
	SHOW(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request3, sizeof(request3)));
	ring = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	b = mmap(ring, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	SHOW((char *)b == ring);
	send_one("three");
	p.fd = fd;
	SHOW(poll(&p, 1, 20000));
	SHOW(__atomic_load_n(&b->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER);
	SHOW(b->hdr.bh1.num_pkts > 0);
	SHOW(munmap(ring, all));
	SHOW(close(fd));
}

/* Blocks that are larger than most memory is had in pieces. */
CASE(ring_large)
{
	static const unsigned int sizes[] = { 4 << 20, 8 << 20, 32 << 20 };
	struct tpacket_req request = { .tp_frame_size = 1 << 20 };
	struct tpacket2_hdr *h;
	size_t all;
	char *ring;
	int fd;

	for (unsigned int i = 0; i < COUNT(sizes); i++) {
		request.tp_block_size = sizes[i];
		request.tp_block_nr = 2;
		request.tp_frame_nr = 2 * sizes[i] / request.tp_frame_size;
		all = 2 * (size_t)sizes[i];
		fd = packet_socket(TPACKET_V2);
		SHOW(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)));
		ring = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		SHOW(ring == MAP_FAILED);
		MUST(ring != MAP_FAILED);
		/* Its last byte is there, too. */
		ring[all - 1] = 1;
		send_one("large");
		SHOW(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 20000));
		h = (void *)ring;
		show_frame(h);
		SHOW(munmap(ring, all));
		SHOW(close(fd));
	}
}
