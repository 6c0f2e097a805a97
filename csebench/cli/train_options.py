"""Turn the options of `csebench train` and `csebench evaluate` into a run, an encoder or a model.

A run is described by options or by a spec, and needs no table. Names are searched in config/, among
folders and runs, and on the hub.
"""

from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from csebench.base.errors import BadInput, unknown, validated
from csebench.base.files import DataRoot, parse_json, read_text, sha256
from csebench.base.hub import COMMIT, as_path, find_folder, folder_of, local_folder, names_commit
from csebench.base.models import model_sha256
from csebench.data.corpus import Corpus
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import COMPONENTS, declaration, fill
from csebench.plan.code_versions import draft_codes
from csebench.plan.recipe import Conditions, by_component, make_spec, refuse_contradictions
from csebench.plan.schema.declarations import Dataset, Declaration, EncoderRef, RunSettings
from csebench.plan.schema.paper import Recipe
from csebench.plan.schema.spec import TRAINER_VERSION, Spec

# ---------------------------------------------------------------- a run from options


SEED = 42  # of a run, unless --seed gives another


def refuse_options_of_method(args: Namespace) -> None:
    """Refuse options that describe a run, if a spec describes it already.

    Raises:
        BadInput: one of these options is given.
    """
    given = {
        "--variant": args.variant,
        "--with": args.components,
        "--set": args.set,
        "--encoder": args.encoder,
        "--size": args.size,
        "--seed": args.seed,
        "--precision": args.precision,
        "--threads": args.threads,
    }
    for option, value in given.items():
        if value not in (None, []):
            raise BadInput(
                f"train: {option}: is for --method. Change the value in the spec, or describe the"
                " run with --method."
            )


def spec_from(args: Namespace, corpus: Corpus | None, size: int) -> Spec:
    """Plan the run that the options of `csebench train` describe.

    Args:
        corpus: the content of --corpus; None if the method reads none.
        size: number of sentences to draw from the corpus.

    Raises:
        BadInput: an option is missing, or a name or a setting is wrong.
    """
    if args.encoder is None:
        raise BadInput(
            "train: --method needs --encoder: a name in config/, a folder, or ID@COMMIT of the hub."
        )
    method = declaration(args.method)
    settings = by_component(settings_from_options(args.set))
    params = settings.pop("", {})  # the settings of the method itself
    components = {name: {} for name in args.components} | settings
    check_components(components, method, args.variant, args.components)
    corpus_file = None
    if method.needs_corpus:
        if corpus is None:
            raise BadInput(f"train: method {args.method} needs --corpus FILE.")
        corpus_file = Dataset(path=args.corpus.name, sha256=corpus.sha256)
    dev_sha256 = None
    if method.is_trained:
        dev_sha256 = sha256(data_root_or_default(args.data) / catalog.STSB_DEV)
    recipe = Recipe(method=args.method, variant=args.variant, params=params, components=components)
    stated = {"precision": args.precision, "threads": args.threads}
    run_settings = RunSettings(**{key: value for key, value in stated.items() if value is not None})
    given = Conditions({method.corpus: corpus_file}, dev_sha256, run_settings)
    seed = SEED if args.seed is None else args.seed
    return make_spec(recipe, find_encoder(args.encoder), size, seed, given, "--set")


def settings_from_options(texts: list[str]) -> dict[str, str]:
    """Split the settings of --set at their first `=`."""
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise BadInput(f"--set {text}: expected KEY=VALUE, as in learning_rate=3e-5.")
        settings[key] = value
    return settings


def check_components(
    components: Iterable[str], method: Declaration, variant: str | None, added: list[str]
) -> None:
    """Check that components exist, and that the run has every component that --set names.

    Args:
        added: components of --with. The method or its variant may declare others.
    """
    declared = dict(method.components)
    if variant is not None:
        declared |= method.variant_params.get(variant, {}).get("components", {})
    for name in components:
        declaration(name, COMPONENTS)  # refuses an unknown name
        # a variant removes a component of the method by None
        if name not in added and declared.get(name) is None:
            raise BadInput(
                f"--set {name}.…: the run has no component {name}; add it by --with {name}."
            )


# ---------------------------------------------------------------- a run from a spec


def read_spec(text: str) -> Spec:
    """Read a spec, and check that it fits the declarations and versions of this code.

    Args:
        text: JSON, or the name of a JSON file.

    Raises:
        BadInput: the spec is no spec, or this code would make another run from it.
    """
    if text.lstrip().startswith("{"):
        where = "spec"
        content = parse_json(text, where)
    else:
        where = text
        content = parse_json(read_text(Path(text)), where)
    spec = validated(Spec, content, where)
    check_data(spec, where)
    check_versions(spec, where)
    codes = draft_codes(spec.method, spec.components)
    check_codes(spec, codes, where)

    components = {}
    for name, used in spec.components.items():
        declared = declaration(name, COMPONENTS)
        params = fill(declared, used.params, f"{where}: components: {name}")
        components[name] = used.model_copy(update={"params": params})
    method = declaration(spec.method)
    params = fill(method, method.unstated | spec.params, f"{where}: params: {method.name}")
    spec = spec.model_copy(update={"params": params, "components": components, "code": codes})
    refuse_contradictions(spec, where)
    return spec


def check_data(spec: Spec, where: str) -> None:
    """Raise BadInput if the corpus or dev set of a spec is missing, or its method needs none."""
    method = declaration(spec.method)
    if method.needs_corpus and spec.corpus is None:
        raise BadInput(f"{where}: corpus: {spec.method} needs one.")
    if not method.needs_corpus and spec.corpus is not None:
        raise BadInput(f"{where}: corpus: {spec.method} needs none.")
    if (spec.dev_sha256 is not None) != method.is_trained:
        raise BadInput(f"{where}: dev_sha256: a trained method needs one, any other none.")


def check_versions(spec: Spec, where: str) -> None:
    """Raise BadInput if a version in a spec is not the version of this code."""
    check_version("method_version", spec.method_version, declaration(spec.method).version, where)
    check_version("trainer_version", spec.trainer_version, TRAINER_VERSION, where)
    for name, used in spec.components.items():
        current = declaration(name, COMPONENTS).version
        check_version(f"components.{name}.version", used.version, current, where)


def check_version(key: str, given: int, current: int, where: str) -> None:
    if given != current:
        raise BadInput(
            f"{where}: {key}: is {given}, but this code has version {current}; check out the code"
            f" of version {given}."
        )


def check_codes(spec: Spec, codes: dict[str, str], where: str) -> None:
    """Raise BadInput if a spec was made with other code of a draft.

    A spec without hashes of code is not checked, because a person may have written it.

    Args:
        codes: hashes of the current drafts, by unit.
    """
    if not spec.code:
        return
    for unit in sorted({*spec.code, *codes}):
        if spec.code.get(unit) != codes.get(unit):
            raise BadInput(
                f"{where}: code: {unit} has other code than the spec was made with; make the spec"
                " again."
            )


# ---------------------------------------------------------------- encoders, models, data


def find_encoder(name: str) -> EncoderRef:
    """Find an encoder on a command line.

    Args:
        name: a name in config/ (with or without folder or owner), a folder, or ID@COMMIT.

    Raises:
        BadInput: the name is unknown or means two things, or its revision is no commit.
    """
    known = known_encoders()
    for ref in known:
        if name in (ref.name, Path(ref.name).name):
            if COMMIT.fullmatch(ref.revision) and find_folder(name) is not None:
                raise BadInput(
                    f"encoder {name}: there is a folder of this name, and config/ has the encoder"
                    f" of the hub. Write ./{name} for the folder, or {ref.name}@{ref.revision}."
                )
            return ref
    ref = EncoderRef.parse(name)
    folder = local_folder(ref)
    if folder is not None:
        return EncoderRef(name=name, revision=model_sha256(folder))
    if COMMIT.fullmatch(ref.revision):
        return ref
    if "@" in name:
        raise BadInput(
            f"{name}: a branch moves; name the commit, of 40 digits, as in {ref.name}@COMMIT."
        )
    possible = {ref.name for ref in known} | {"ID@COMMIT of the hub", "a model folder"}
    raise unknown("encoder", name, possible)


def find_model(name: str) -> str:
    """Find the model that `csebench evaluate` opens.

    Args:
        name: path of a folder, id of a run, name in config/, or id of the hub.

    Returns:
        The path of a folder, or an id of the hub. An encoder of config/ has its pinned commit.
    """
    if folder_of(name) is not None:
        return as_path(name)
    if Path(name).exists() and not names_commit(name):
        raise BadInput(f"--model {name}: is a file; name the folder of a model.")
    model_of_run = catalog.RUNS / name / "model"
    if model_of_run.is_dir():
        return str(model_of_run)
    is_in_config = any(name == ref.name for ref in known_encoders())
    if "/" in name and not is_in_config:
        return name  # an id of the hub
    ref = find_encoder(name)
    if local_folder(ref) is not None:
        return ref.name
    return f"{ref.name}@{ref.revision}"


def known_encoders() -> list[EncoderRef]:
    """List the encoders of all scales."""
    encoders = []
    for scale in catalog.scale_names():
        encoders += catalog.scale(scale).encoders.values()
    return encoders


def data_root_or_default(given: Path | None) -> Path | DataRoot:
    """Choose the data root: the one that a command line gives, or that of scale paper."""
    return given or catalog.data_root(catalog.scale("paper"))
