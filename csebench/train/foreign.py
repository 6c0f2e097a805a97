"""Guard the process, and the settings of torch that affect numbers, against the code of a method.

A method is foreign code that runs inside the trainer. If the code changes a setting of the whole
process, it changes the numbers of every later step, and of the next runs of the same process.
"""

import os
import sys
from contextlib import suppress

import torch
from threadpoolctl import ThreadpoolController

from csebench.base.errors import RunFailed, place

DENORMAL = 1e-40  # a float32 that computations turn into 0 if torch.set_flush_denormal is on


class ForeignCode:
    """A context manager around code of a method.

    If the code forked a process that returns here, it is ended: it must not write the run's files.

    Raises:
        RunFailed: the code changed a setting of torch, seeded its random numbers, or raised an
            exception that is no error, such as SystemExit.
    """

    def __init__(self, run: str, holds_interrupts: bool = True):
        """Record the present settings and seeds, which are expected from now on.

        Args:
            run: id of the run, for messages.
            holds_interrupts: whether `stop_signals` holds back Ctrl-C. Then a KeyboardInterrupt was
                raised by the code itself.
        """
        self.run = run
        self.holds_interrupts = holds_interrupts
        self.process = os.getpid()
        self.libraries = ThreadpoolController().lib_controllers
        self.settings = self.read_settings()
        self.seeds = read_seeds()

    def seed(self, value: int) -> None:
        """Seed torch as the trainer does between two parts of foreign code, and accept the seed."""
        torch.manual_seed(value)
        self.accept_seeds()

    def accept_seeds(self) -> None:
        """Expect the present seeds from now on, for example after loading a checkpoint."""
        self.seeds = read_seeds()

    def __enter__(self) -> "ForeignCode":
        return self

    def __exit__(self, kind, error: BaseException | None, trace) -> None:
        if os.getpid() != self.process:
            self.end_forked_process()
        if error is None:
            self.check_settings()
            return
        if isinstance(error, KeyboardInterrupt) and not self.holds_interrupts:
            return
        if not isinstance(error, Exception):
            raise RunFailed(
                f"{self.run}: {place(error)}: ends the process ({type(error).__name__}); raise an"
                " error instead."
            ) from error

    def end_forked_process(self) -> None:
        """End this process, which foreign code forked, so that it does not go on with the run."""
        with suppress(OSError):
            print(
                f"csebench: {self.run}: code of the method forked a process that goes on with the"
                " run; it is ended. Let it end by os._exit.",
                file=sys.stderr,
                flush=True,
            )
        os._exit(1)

    def check_settings(self) -> None:
        """Compare settings and seeds with the expected ones.

        Raises:
            RunFailed: one of them changed. The message names the first.
        """
        expected = self.settings | self.seeds
        for name, now in (self.read_settings() | read_seeds()).items():
            before = expected.get(name, now)  # CUDA has a seed only after it was first used
            if now != before:
                raise RunFailed(
                    f"{self.run}: code of the method changes {name} from {before} to {now}, and"
                    " with it the numbers of every later step. Leave it as it is, or restore it in"
                    " the same function."
                )

    def read_settings(self) -> dict[str, object]:
        """Read the settings that affect numbers. The key of each is the call that reads it."""
        denormal = torch.tensor(DENORMAL, dtype=torch.float32, device="cpu")
        settings = {
            "torch.get_num_threads()": torch.get_num_threads(),
            "torch.get_default_dtype()": torch.get_default_dtype(),
            "torch.get_default_device()": torch.get_default_device(),
            "torch.get_float32_matmul_precision()": torch.get_float32_matmul_precision(),
            "torch.get_deterministic_debug_mode()": torch.get_deterministic_debug_mode(),
            "torch.is_grad_enabled()": torch.is_grad_enabled(),
            "torch.is_autocast_enabled('cpu')": torch.is_autocast_enabled("cpu"),
            "torch.is_autocast_enabled('cuda')": torch.is_autocast_enabled("cuda"),
            "torch.backends.cudnn.benchmark": torch.backends.cudnn.benchmark,
            "torch.backends.cudnn.deterministic": torch.backends.cudnn.deterministic,
            "torch.set_flush_denormal": (denormal * 1).item() == 0,
        }
        for library in self.libraries:
            name = os.path.basename(library.filepath)
            settings[f"the threads of {name}"] = library.num_threads
        return settings


def read_seeds() -> dict[str, object]:
    """Read the seeds of torch. The key of each is the call that reads it."""
    seeds: dict[str, object] = {"torch.initial_seed()": torch.initial_seed()}
    if torch.cuda.is_initialized():
        seeds["torch.cuda.initial_seed()"] = torch.cuda.initial_seed()
    return seeds
