"""config check, show and init; where the backend comes from; --local."""
import json
import os
import re
import stat

import support
from support import CliTest


class Config(CliTest):
    def write(self, text, name="holdfast.toml"):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def test_all_mistakes_at_once_with_their_places(self):
        path = self.write('default = "none"\n'
                          "[backends.a]\n"
                          f'url = "sqlite://{self.path("x.db")}"\n'
                          'tll = "5s"\n'
                          "[backends.b]\n"
                          'url = "rediss//typo"\n'
                          "[backends.c]\n"
                          f'url = "sqlite://{self.path("x.db")}"\n'
                          'ttl = "soon"\n')
        result = self.holdfast("config", "check", path, url=None)
        self.assertEqual(result.code, 78, result)
        self.assertIn(f"{path}:4:1", result.err)
        self.assertIn("ttl", result.err)
        self.assertIn(f"{path}:6:", result.err)
        self.assertIn(f"{path}:9:", result.err)
        self.assertIn("none", result.err)
        by_option = self.holdfast("--config", path, "config", "check", url=None)
        self.assertEqual(by_option.err, result.err)

    def test_broken_toml(self):
        path = self.write("[backends.a\nurl = 1\n")
        result = self.holdfast("config", "check", path, url=None)
        self.assertEqual(result.code, 78, result)
        self.assertIn(f"{path}:1:", result.err)

    def test_a_file_that_is_missing(self):
        result = self.holdfast("config", "check", self.path("none.toml"), url=None)
        self.assertEqual(result.code, 78, result)
        self.assertIn("none.toml", result.err)
        self.assertEqual(self.holdfast("config", "check", url=None).code, 78)

    def test_init_writes_what_check_accepts(self):
        path = self.path("new.toml")
        self.assertEqual(self.holdfast("config", "init", path, url=None).code, 0)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        result = self.holdfast("--json", "config", "check", path, url=None)
        self.assertEqual(json.loads(result.out)["backends"], 1, result)
        with open(path) as f:
            before = f.read()
        # Uncommented, each value is TOML: a string, a number, true or false.
        self.assertIn("\n# private = false\n", before)
        self.assertNotRegex(before, r'(?m)^# \w+ = (?!"|[0-9]|true$|false$)')
        again = self.holdfast("config", "init", path, url=None)
        self.assertEqual(again.code, 78, again)
        self.assertIn("nothing was written", again.err)
        with open(path) as f:
            self.assertEqual(f.read(), before)

    def test_init_without_a_path_writes_what_holdfast_reads(self):
        result = self.holdfast("config", "init", url=None, cwd=self.folder)
        self.assertEqual(result.code, 0, result)
        path = self.path(".config/holdfast/holdfast.toml")
        self.assertIn(path, result.err)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(self.holdfast("config", "check", url=None).out.split(":")[0], path)
        other = self.path("other.toml")
        for args, env in ((("--config", other), {}), ((), {"HOLDFAST_CONFIG": other})):
            self.assertEqual(self.holdfast(*args, "config", "init", url=None, env=env).code, 0)
            os.remove(other)

    def test_a_password_that_cannot_be_read_is_a_mistake(self):
        path = self.write('[backends.a]\nurl = "redis://h"\npassword_file = "/none/here"\n'
                          '[backends.b]\nurl = "redis://h"\npassword_env = "NOT_HERE"\n')
        result = self.holdfast("config", "check", path, url=None)
        self.assertEqual(result.code, 78, result)
        self.assertRegex(result.err, r'backend "a": .*/none/here.* cannot be read')
        self.assertRegex(result.err, r'backend "b": .*NOT_HERE is not set')
        with_both = self.write(f'[backends.a]\nurl = "redis://h"\npassword_file = "{self.write("x", "secret")}"\n'
                               '[backends.b]\nurl = "redis://h"\npassword_env = "HERE"\n', "both.toml")
        self.assertEqual(self.holdfast("config", "check", with_both, url=None, env={"HERE": "x"}).code, 0)

    def test_a_database_that_no_server_has_is_a_mistake(self):
        path = self.write('[backends.a]\nurl = "redis://h/2147483648"\n')
        result = self.holdfast("config", "check", path, url=None)
        self.assertEqual(result.code, 78, result)
        self.assertIn("must be the number of a database", result.err)

    def test_neither_a_byte_order_mark_nor_a_line_break_belongs_to_a_password(self):
        server = support.Redis("--password=the-right-one")
        self.addCleanup(server.close)
        host = server.url.rsplit("@", 1)[1].rstrip("/")
        secret = self.write("\ufeffthe-right-one\r\n", "secret")
        os.chmod(secret, 0o600)
        path = self.write(f'[backends.file]\nurl = "redis://{host}"\npassword_file = "{secret}"\n'
                          f'[backends.env]\nurl = "redis://{host}"\npassword_env = "SECRET"\n')
        for backend in ("file", "env"):
            result = self.holdfast("--config", path, "--backend", backend, "list", url=None,
                                   env={"SECRET": "the-right-one\r\n"})
            self.assertEqual(result.code, 0, result)

    def test_every_commented_option_of_init_is_one(self):
        path = self.path("new.toml")
        self.holdfast("config", "init", path, url=None)
        with open(path) as f:
            common = "\n".join(f.read().split("\n\n")[1:3])
        # Those of the first backend, uncommented, as a user would.
        lines = [line[2:] if line.startswith("# ") and " = " in line else line
                 for line in common.splitlines()]
        uncommented = self.write("\n".join(lines) + "\n", "uncommented.toml")
        result = self.holdfast("config", "check", uncommented, url=None)
        self.assertEqual(result.code, 0, result)

    def test_every_commented_backend_of_init_can_be_used(self):
        path = self.path("new.toml")
        self.holdfast("config", "init", path, url=None)
        password = self.write("secret\n", "password")
        with open(path) as f:
            blocks = [block for block in f.read().split("\n\n") if "# [backends.my-" in block]
        self.assertGreater(len(blocks), 5)
        for block in blocks:
            lines = [line[2:] for line in block.splitlines() if re.match(r"# (\[backends|url = |password_file = )", line)]
            with self.subTest(lines[0]):
                uncommented = self.write("\n".join(lines).replace("/etc/holdfast/password", password) + "\n", "uncommented.toml")
                result = self.holdfast("config", "check", uncommented, url=None)
                self.assertEqual(result.code, 0, result)

    def test_a_secret_of_the_sentinels_is_checked(self):
        url = "redis+sentinel://127.0.0.1/mymaster"
        path = self.write(f'[backends.a]\nurl = "{url}"\nsentinel_password_env = "hunter-2"\n')
        result = self.holdfast("config", "check", path, url=None)
        self.assertEqual(result.code, 78, result)
        self.assertNotIn("hunter-2", result.err + result.out)
        path = self.write(f'[backends.a]\nurl = "{url}"\nsentinel_password_env = "NOT_SET_ANYWHERE"\n')
        result = self.holdfast("config", "check", path, url=None)
        self.assertEqual(result.code, 78, result)
        self.assertIn("NOT_SET_ANYWHERE is not set", result.err)

    def test_show_says_what_was_chosen_and_why(self):
        path = self.write('default = "jobs"\n[backends.jobs]\n'
                          f'url = "sqlite://{self.path("jobs.db")}"\nttl = "30s"\n')
        result = self.holdfast("--config", path, "config", "show", url=None)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"(?m)^backend +sqlite$")
        self.assertRegex(result.out, r"(?m)^from .*holdfast\.toml")
        self.assertRegex(result.out, r"(?m)^ttl +30s$")
        self.assertRegex(result.out, r"(?m)^backoff_min +\S+ +\(default\)$")
        shown = json.loads(self.holdfast("--json", "config", "show").out)
        self.assertEqual((shown["schema"], shown["source"]), ("holdfast.config.show/1", "--url"))
        self.assertTrue(shown["options"]["ttl"]["default"])

    def test_where_the_backend_comes_from(self):
        first = self.write(f'[backends.one]\nurl = "sqlite://{self.path("one.db")}"\n'
                           f'[backends.two]\nurl = "sqlite://{self.path("two.db")}"\n')
        result = self.holdfast("--config", first, "--backend", "two", "run", "x", "--", "true",
                               url=None)
        self.assertEqual(result.code, 0, result)
        self.assertTrue(os.path.exists(self.path("two.db")))
        self.assertFalse(os.path.exists(self.path("one.db")))
        wrong = self.holdfast("--config", first, "--backend", "tow", "run", "x", "--", "true",
                              url=None)
        self.assertEqual(wrong.code, 78, wrong)
        self.assertIn("two", wrong.err)
        by_variable = self.holdfast("run", "x", "--", "true", url=None,
                                    env={"HOLDFAST_URL": "sqlite://" + self.path("three.db")})
        self.assertEqual(by_variable.code, 0, by_variable)
        self.assertTrue(os.path.exists(self.path("three.db")))

    def test_never_the_current_directory(self):
        self.write(f'default = "a"\n[backends.a]\nurl = "sqlite://{self.path("a.db")}"\n')
        result = self.holdfast("run", "x", "--", "true", url=None, cwd=self.folder)
        self.assertEqual(result.code, 78, result)

    def test_local(self):
        result = self.holdfast("--local", "run", "x", "--", "true", url=None)
        self.assertEqual(result.code, 0, result)
        folder = self.path(".local/state/holdfast")
        self.assertTrue(os.path.exists(folder + "/local.db"))
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        elsewhere = self.path("state dir")
        result = self.holdfast("--local", "run", "x", "--", "true", url=None,
                               env={"XDG_STATE_HOME": elsewhere})
        self.assertEqual(result.code, 0, result)
        self.assertTrue(os.path.exists(elsewhere + "/holdfast/local.db"))


if __name__ == "__main__":
    support.main()
