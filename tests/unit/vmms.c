/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines, configuration files and API answers as the VMMs' own documentation shows them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/err.h"
#include "backend/vmm/api.h"
#include "backend/vmm/cmdline.h"
#include "backend/vmm/config.h"

#define MIB (1ull << 20)

/* Words separated by one blank, as the kernel would show them. */
static void parse(const char *words, struct uni_vmm_cmdline *ret)
{
	char line[2048], exe[2048];
	size_t n = strlen(words) + 1;

	assert_true(n <= sizeof(line));
	memcpy(line, words, n);
	for (char *s = line; (s = strchr(s, ' ')) != NULL;)
		*s++ = '\0';
	(void)snprintf(exe, sizeof(exe), "%s", line);
	uni_vmm_cmdline_parse(line, n, exe, ret);
}

static void libvirt_starts_qemu(void **state)
{
	struct uni_vmm_cmdline c;

	parse("/usr/bin/qemu-system-x86_64 -name guest=web1,debug-threads=on -S -object "
	      "{\"qom-type\":\"secret\",\"id\":\"masterKey0\"} -machine "
	      "pc-q35-7.2,usb=off,dump-guest-core=off,memory-backend=pc.ram -accel kvm -cpu host "
	      "-m 2048 -object {\"qom-type\":\"memory-backend-ram\",\"id\":\"pc.ram\"} -overcommit "
	      "mem-lock=off -smp 2,sockets=2,cores=1,threads=1 -uuid 1-2 -display none "
	      "-no-user-config -nodefaults -chardev socket,id=charmonitor,fd=31,server=on "
	      "-mon chardev=charmonitor,id=monitor,mode=control -kernel /srv/app.elf",
		&c);
	assert_string_equal(c.name, "web1");
	assert_string_equal(c.accel, "kvm");
	assert_string_equal(c.image, "/srv/app.elf");
	assert_int_equal(c.nr_vcpus, 2);
	assert_int_equal(c.mem_bytes, 2048 * MIB);
	assert_true(c.only_kvm);
	assert_string_equal(c.qmp, "fd:31");
	/* Nothing said: what QEMU makes then. */
	parse("qemu-system-x86_64 -enable-kvm", &c);
	assert_true(c.only_kvm);
	assert_int_equal(c.nr_vcpus, 0);
	assert_int_equal(c.default_vcpus, 1);
	assert_int_equal(c.default_mem_bytes, 128 * MIB);
	/* With another one behind it, KVM need not be what is used. */
	parse("qemu-system-x86_64 -accel kvm -accel tcg", &c);
	assert_false(c.only_kvm);
	parse("qemu-system-x86_64 -machine q35,accel=kvm:tcg", &c);
	assert_false(c.only_kvm);
	parse("qemu-system-x86_64 -accel tcg -accel kvm", &c);
	assert_false(c.only_kvm);
	parse("qemu-system-x86_64 -accel kvm,kernel-irqchip=split", &c);
	assert_true(c.only_kvm);
	parse("qemu-system-x86_64 -readconfig vm.cfg", &c);
	assert_int_equal(c.default_mem_bytes, 0);
}

/* Its file is found by the plugin's name, wherever that is installed. */
static void our_plugin(void **state)
{
	static const char *const known[][2] = {
		{ "-plugin "
		  "/usr/lib/uniscope/uniscope-exact.so,out=/tmp/a,functions=/tmp/b,mode=tree",
			"/tmp/a" },
		{ "-plugin file=uniscope-exact.so,mode=tree,out=a,,b", "a,b" },
		{ "-plugin /x/libhotblocks.so,out=/tmp/a", "" },
		{ "-plugin /x/uniscope-exact.so.old,out=/tmp/a", "" },
		{ "-plugin /x/uniscope-exact.so", "" },
		{ "-kernel uniscope-exact.so,out=/tmp/a", "" },
	};
	struct uni_vmm_cmdline c;
	char line[512];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		(void)snprintf(line, sizeof(line), "qemu-system-x86_64 %s", known[i][0]);
		parse(line, &c);
		assert_string_equal(c.exact, known[i][1]);
	}
	(void)state;
}

/* The long form of -qmp. */
static void monitors_by_chardev(void **state)
{
	static const struct {
		const char *words, *want, *tcp;
	} known[] = {
		{ "-chardev socket,id=qmp,path=/run/100.qmp,server=on,wait=off -mon "
		  "chardev=qmp,mode=control",
			"/run/100.qmp" },
		{ "-mon mode=control,chardev=b --chardev socket,id=a,path=/a,server -chardev "
		  "socket,path=/b,id=b,server,nowait",
			"/b" },
		{ "-mon chardev=a -chardev socket,id=a,path=/a,server=on", "" },    /* for people */
		{ "-mon chardev=a,mode=control -chardev socket,id=a,path=/a", "" }, /* a client */
		{ "-mon chardev=a,mode=control -chardev socket,id=ab,path=/a,server=on", "" },
		{ "-mon chardev=a,mode=control -chardev pipe,id=a,path=/a,server=on", "" },
		{ "-qmp unix:/q,server=on -mon chardev=a,mode=control -chardev "
		  "socket,id=a,path=/a,server=on",
			"/q" },
		{ "-mon chardev=a,mode=control -chardev", "" },
		{ "-qmp tcp:127.0.0.1:4444,server=on,wait=off", "", "127.0.0.1:4444" },
		{ "-qmp-pretty tcp::4445,server", "", "127.0.0.1:4445" },
		{ "-mon chardev=a,mode=control -chardev socket,id=a,host=::1,port=4446,server=on",
			"", "::1:4446" },
		{ "-chardev socket,id=a,fd=25,server=on,wait=off -mon chardev=a,mode=control",
			"fd:25" },
	};
	struct uni_vmm_cmdline c;
	char line[512];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		(void)snprintf(line, sizeof(line), "qemu-system-x86_64 %s", known[i].words);
		parse(line, &c);
		assert_string_equal(c.qmp, known[i].want);
		assert_string_equal(c.qmp_tcp, known[i].tcp != NULL ? known[i].tcp : "");
	}
}

static void firecracker_and_its_jailer(void **state)
{
	static const char config[] =
		"{\"boot-source\": {\"kernel_image_path\": \"vmlinux.bin\", \"boot_args\": "
		"\"console=ttyS0 reboot=k panic=1\", \"initrd_path\": null}, \"drives\": [], "
		"\"machine-config\": {\"vcpu_count\": 2, \"mem_size_mib\": 1024, \"smt\": false, "
		"\"track_dirty_pages\": false}, \"cpu-config\": null, \"vsock\": null}";
	static const char least[] =
		"{\"machine-config\": {\"vcpu_count\": 1, \"mem_size_mib\": 1}}";
	struct uni_vmm_cmdline c;

	parse("/firecracker --id 551e7604-e35c-42b3-b825-416853441234 --start-time-us 1 "
	      "--start-time-cpu-us 2 --parent-cpu-time-us 3 --api-sock /run/fc.sock",
		&c);
	assert_string_equal(c.vmm, "firecracker");
	assert_string_equal(c.name, "551e7604-e35c-42b3-b825-416853441234");
	assert_string_equal(c.api, "/run/fc.sock");
	assert_string_equal(c.image, "");
	assert_true(c.only_kvm);
	assert_int_equal(c.default_mem_bytes, 0); /* the API will have said */
	parse("firecracker", &c);
	assert_string_equal(c.api, "/run/firecracker.socket");
	parse("firecracker --no-api --config-file vm_config.json", &c);
	assert_string_equal(c.api, "");
	assert_string_equal(c.config, "vm_config.json");
	assert_true(uni_vmm_config_parse(config, sizeof(config) - 1, &c));
	assert_string_equal(c.image, "vmlinux.bin");
	assert_int_equal(c.nr_vcpus, 2);
	assert_int_equal(c.mem_bytes, 1024 * MIB);
	parse("firecracker --no-api", &c);
	assert_true(uni_vmm_config_parse(least, sizeof(least) - 1, &c));
	assert_int_equal(c.nr_vcpus, 1);
	assert_int_equal(c.mem_bytes, MIB);
}

static void cloud_hypervisor(void **state)
{
	static const char info[] =
		"{\"config\":{\"cpus\":{\"boot_vcpus\":4,\"max_vcpus\":8},\"memory\":{\"size\":"
		"1073741824,\"mergeable\":false},\"payload\":{\"firmware\":null,\"kernel\":"
		"\"/srv/vmlinux\",\"cmdline\":\"console=hvc0\"},\"platform\":{\"num_pci_segments\":"
		"1,\"tdx\":false}},\"state\":\"Running\",\"memory_actual_size\":1073741824}";
	static const char old[] =
		"{\"config\":{\"kernel\":{\"path\":\"/old\"},\"platform\":{\"tdx\""
		":true}}}";
	static const char fw[] = "{\"config\":{\"payload\":{\"firmware\":\"/hypervisor-fw\"}}}";
	struct uni_vmm_cmdline c;

	parse("./cloud-hypervisor --kernel ./hypervisor-fw --disk path=focal.raw path=ci.img "
	      "--cpus boot=4 --memory size=1024M --net tap=,mac=,ip=,mask=",
		&c);
	assert_string_equal(c.image, "./hypervisor-fw");
	assert_int_equal(c.nr_vcpus, 4);
	assert_int_equal(c.mem_bytes, 1024 * MIB);
	parse("cloud-hypervisor-static --firmware /CLOUDHV.fd --disk path=a", &c);
	assert_string_equal(c.vmm, "cloud-hypervisor");
	assert_string_equal(c.image, "/CLOUDHV.fd");
	assert_int_equal(c.default_mem_bytes, 512 * MIB);
	assert_int_equal(c.default_vcpus, 1);
	parse("cloud-hypervisor --firmware /CLOUDHV.fd --kernel /k", &c);
	assert_string_equal(c.image, "/k"); /* the kernel tells more than the firmware */
	parse("cloud-hypervisor --api-socket path=/tmp/ch.sock", &c);
	assert_string_equal(c.api, "/tmp/ch.sock");
	parse("cloud-hypervisor --api-socket /tmp/ch.sock", &c);
	assert_string_equal(c.api, "/tmp/ch.sock");
	assert_int_equal(c.default_mem_bytes, 0);
	assert_true(uni_vmm_config_parse(info, sizeof(info) - 1, &c));
	assert_string_equal(c.image, "/srv/vmlinux");
	assert_int_equal(c.nr_vcpus, 4);
	assert_int_equal(c.mem_bytes, 1024 * MIB);
	assert_false(c.confidential);
	parse("cloud-hypervisor --api-socket fd=3", &c);
	assert_string_equal(c.api, "");
	assert_true(uni_vmm_config_parse(old, sizeof(old) - 1, &c));
	assert_string_equal(c.image, "/old");
	assert_true(c.confidential);
	parse("cloud-hypervisor", &c);
	assert_true(uni_vmm_config_parse(fw, sizeof(fw) - 1, &c));
	assert_string_equal(c.image, "/hypervisor-fw");
}

static void crosvm(void **state)
{
	struct uni_vmm_cmdline c;

	parse("crosvm run --disable-sandbox --block rootfs.ext4,ro --params root=/dev/vda "
	      "--mem size=2048 --cpus num-cores=4 --name vm1 -s /run/crosvm.sock ./vmlinux",
		&c);
	assert_string_equal(c.image, "./vmlinux");
	assert_string_equal(c.name, "vm1");
	assert_int_equal(c.nr_vcpus, 4);
	assert_int_equal(c.mem_bytes, 2048 * MIB);
	/* The kernel need not be last; what belongs to an option is no kernel. */
	parse("/usr/bin/crosvm --log-level debug run vmlinux --initrd initrd.img -p ro", &c);
	assert_string_equal(c.image, "vmlinux");
	assert_int_equal(c.default_mem_bytes, 256 * MIB);
	assert_int_equal(c.default_vcpus, 1);
	/* An option that is not known swallows it: still found. */
	parse("crosvm run --some-new-switch vmlinux", &c);
	assert_string_equal(c.image, "vmlinux");
	parse("crosvm run --bios /fw.bin --disable-sandbox", &c);
	assert_string_equal(c.image, "/fw.bin");
	parse("crosvm run --protected-vm k", &c);
	assert_true(c.confidential);
	assert_string_equal(c.image, "k");
	parse("crosvm stop /run/crosvm.sock", &c);
	assert_true(c.only_kvm); /* no guest without a KVM VM */
}

static void kvmtool_and_solo5(void **state)
{
	struct uni_vmm_cmdline c;

	parse("lkvm run -k ./bzImage -m 512 -c 2 --name web -p console=ttyS0 -d disk.img", &c);
	assert_string_equal(c.image, "./bzImage");
	assert_string_equal(c.name, "web");
	assert_int_equal(c.nr_vcpus, 2);
	assert_int_equal(c.mem_bytes, 512 * MIB);
	parse("./lkvm-static run --network mode=user --balloon ./app.elf", &c);
	assert_string_equal(c.image, "./app.elf");
	parse("lkvm run --kernel=a --cpus=3 --firmware /fw", &c);
	assert_string_equal(c.image, "a");
	assert_int_equal(c.nr_vcpus, 3);

	parse("solo5-hvt --net:service0=tap100 --block:storage=disk.img -- test_net.hvt limit", &c);
	assert_string_equal(c.image, "test_net.hvt");
	assert_int_equal(c.default_mem_bytes, 512 * MIB);
	parse("solo5-hvt --mem=64 --net:service=tap0 app.hvt --ipv4=10.0.0.2/24", &c);
	assert_string_equal(c.image, "app.hvt");
	assert_int_equal(c.mem_bytes, 64 * MIB);
	parse("solo5-spt --mem=32 app.spt --ipv4=10.0.0.2/24", &c);
	assert_string_equal(c.image, "app.spt");
	assert_string_equal(c.accel, "process");
	assert_false(c.only_kvm);
}

static int body(const char *text, size_t *at, size_t *size)
{
	return uni_vmm_http_parse(text, strlen(text), at, size);
}

static void http_answers(void **state)
{
	static const char good[] = "HTTP/1.1 200 \r\nServer: Firecracker API\r\nConnection: "
				   "keep-alive\r\nContent-Type: application/json\r\n"
				   "content-length: 4\r\n\r\n{\"a\"";
	size_t at = 0, size = 0;

	assert_int_equal(body(good, &at, &size), 0);
	assert_int_equal(size, 4);
	assert_memory_equal(good + at, "{\"a\"", 4);
	/* Each beginning of it is not enough yet. */
	for (size_t n = 0; n < sizeof(good) - 1; n++)
		assert_int_equal(uni_vmm_http_parse(good, n, &at, &size), -UNI_EAGAIN);
	assert_int_equal(
		body("HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", &at, &size), -UNI_EPROTO);
	assert_int_equal(body("HTTP/1.1 200 OK\r\n\r\n", &at, &size), -UNI_EPROTO);
	assert_int_equal(
		body("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", &at, &size), -UNI_EPROTO);
	assert_int_equal(
		body("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", &at, &size),
		-UNI_EPROTO);
	assert_int_equal(body("SSH-2.0-x\r\n", &at, &size), -UNI_EPROTO);
}

/* A VMM's API in a process of its own: answers each request with the same text. */
static pid_t serve(const char *path, const char *answer)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int ready[2];
	char byte = 0;
	pid_t pid;

	(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int s = socket(AF_UNIX, SOCK_STREAM, 0);
		char request[1024];

		if (bind(s, (struct sockaddr *)&un, sizeof(un)) != 0 || listen(s, 4) != 0 ||
			write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;) {
			int c = accept(s, NULL, NULL);

			/* The last byte by itself. */
			if (recv(c, request, sizeof(request), 0) > 0 && answer[0] != '\0') {
				(void)!write(c, answer, strlen(answer) - 1);
				(void)usleep(20000);
				(void)!write(c, answer + strlen(answer) - 1, 1);
			}
			if (answer[0] != '\0') /* else: never answers */
				(void)close(c);
		}
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void end(pid_t pid, const char *path)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)unlink(path);
}

static void an_api_is_asked(void **state)
{
	static const char answer[] =
		"HTTP/1.1 200 \r\nContent-Length: 98\r\n\r\n"
		"{\"boot-source\":{\"kernel_image_path\":\"/k.elf\"},\"machine-config\":{\"vcpu_"
		"count\":3,\"mem_size_mib\":64}}";
	struct uni_vmm_cmdline c;
	char path[64], line[128];
	pid_t pid;

	(void)snprintf(path, sizeof(path), "/tmp/uniscope-api-%d", getpid());
	(void)snprintf(line, sizeof(line), "firecracker --api-sock %s", path);
	assert_int_equal(strlen(strstr(answer, "\r\n\r\n") + 4), 98);
	pid = serve(path, answer);
	parse(line, &c);
	assert_int_equal(uni_vmm_api_read(pid, &c), 0);
	assert_string_equal(c.image, "/k.elf");
	assert_int_equal(c.nr_vcpus, 3);
	assert_int_equal(c.mem_bytes, 64 * MIB);
	/* A socket of somebody else is none of the VMM's. */
	parse(line, &c);
	assert_int_equal(uni_vmm_api_read(getpid(), &c), -UNI_ENOENT);
	assert_string_equal(c.image, "");
	end(pid, path);
	parse(line, &c);
	assert_int_equal(uni_vmm_api_read(pid, &c), -UNI_ENOENT);
	/* One that never answers does not hold us up for ever. */
	pid = serve(path, "");
	assert_int_equal(uni_vmm_api_read(pid, &c), -UNI_ETIMEDOUT);
	end(pid, path);
	pid = serve(path, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]");
	assert_int_equal(uni_vmm_api_read(pid, &c), -UNI_EPROTO);
	end(pid, path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libvirt_starts_qemu),
		cmocka_unit_test(our_plugin),
		cmocka_unit_test(monitors_by_chardev),
		cmocka_unit_test(firecracker_and_its_jailer),
		cmocka_unit_test(cloud_hypervisor),
		cmocka_unit_test(crosvm),
		cmocka_unit_test(kvmtool_and_solo5),
		cmocka_unit_test(http_answers),
		cmocka_unit_test(an_api_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
