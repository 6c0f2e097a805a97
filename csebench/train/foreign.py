"""What the code of a method must leave as it is: the process, and the settings of torch that decide
numbers.

A method is code of others that runs inside the trainer. Whatever it changes for the whole
process changes numbers of every later step, and of the runs that the same process makes next."""

import os
import sys
from contextlib import suppress

import torch
from threadpoolctl import ThreadpoolController

from csebench.base.errors import RunFailed, place

DENORMAL = 1e-40  # a float32 that is 0 where torch.set_flush_denormal is on


class ForeignCode:
    """A context manager around code of a method. Raises RunFailed where that changes a setting
    of torch, reseeds its random numbers, or ends by what is no error in Python, as by
    SystemExit. A process that the code forked ends here: it must not write the files of the run."""

    def __init__(self, run: str, holds_interrupts: bool = True):
        """State whose code it is.

        Args:
            run: id of the run, for messages.
            holds_interrupts: whether Ctrl-C is noted for later (`stop_signals`), so that a
                KeyboardInterrupt is raised by the code itself.
        """
        self.run = run
        self.holds_interrupts = holds_interrupts
        self.process = os.getpid()
        self.libraries = ThreadpoolController().lib_controllers
        self.settings = self.read_settings()
        self.seeds = read_seeds()

    def seed(self, value: int) -> None:
        """Seed torch, as the trainer does between two parts of foreign code."""
        torch.manual_seed(value)
        self.accept_seeds()

    def accept_seeds(self) -> None:
        """Take the present seeds for those of the run, as after a checkpoint."""
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
            reason = (
                f"{place(error)}: ends the process ({type(error).__name__}); raise an error"
                " instead."
            )
            raise RunFailed(f"{self.run}: {reason}") from error

    def end_forked_process(self) -> None:
        """End a process that the code forked and that would go on with the run."""
        with suppress(OSError):
            line = (
                f"{self.run}: code of the method forked a process that goes on with the run; it is"
                " ended. Let it"
            )
            print(f"csebench: {line} end by os._exit.", file=sys.stderr, flush=True)
        os._exit(1)

    def check_settings(self) -> None:
        """Raises RunFailed with the first setting that is not as it was."""
        for name, now in (self.read_settings() | read_seeds()).items():
            before = (self.settings | self.seeds).get(name, now)
            if now != before:
                raise RunFailed(
                    f"{self.run}: code of the method changes {name} from {before} to {now}, and"
                    " with it the numbers of every later step. Leave it as it is, or restore it in"
                    " the same function."
                )

    def read_settings(self) -> dict[str, object]:
        """The settings that decide numbers, by the call that reads them."""
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
            settings[f"the threads of {os.path.basename(library.filepath)}"] = library.num_threads
        return settings


def read_seeds() -> dict[str, object]:
    """The seeds of torch, by the call that reads them."""
    seeds: dict[str, object] = {"torch.initial_seed()": torch.initial_seed()}
    if torch.cuda.is_initialized():
        seeds["torch.cuda.initial_seed()"] = torch.cuda.initial_seed()
    return seeds
