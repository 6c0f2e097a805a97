"""From the options of `csebench train`, or from a spec file, to a run that needs no table."""

from argparse import Namespace
from pathlib import Path

from csebench.base.errors import BadInput, unknown, validated
from csebench.base.files import DataRoot, parse_json, read_text, sha256
from csebench.base.hub import COMMIT, as_path, find_folder, folder_of, local_folder, names_commit
from csebench.base.models import model_sha256
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import COMPONENTS, declaration, fill
from csebench.plan.code_versions import draft_codes
from csebench.plan.recipe import Conditions, by_component, make_spec, refuse_contradictions
from csebench.plan.schema.declarations import Dataset, EncoderRef, RunSettings
from csebench.plan.schema.paper import Recipe
from csebench.plan.schema.spec import TRAINER_VERSION, Spec


def spec_from(args: Namespace, size: int) -> Spec:
    """The run that the options of `csebench train` describe, with `size` sentences of the
    corpus."""
    if args.encoder is None:
        raise BadInput(
            "train: --method needs --encoder: a name in config/, a folder, or ID@COMMIT of the hub."
        )
    if wrong := [setting for setting in args.set if "=" not in setting]:
        raise BadInput(f"--set {wrong[0]}: expected KEY=VALUE, as in learning_rate=3e-5.")
    settings = dict(setting.split("=", 1) for setting in args.set)
    components = {name: {} for name in args.components} | by_component(settings)
    params = components.pop("", {})
    method = declaration(args.method)
    of_method = method.components | method.variant_params.get(args.variant or "", {}).get(
        "components", {}
    )
    for name in components:
        declaration(name, COMPONENTS)  # refuses an unknown name
        if name not in args.components and of_method.get(name) is None:
            raise BadInput(
                f"--set {name}.…: the run has no component {name}; add it by --with {name}."
            )
    if method.needs_corpus and args.corpus is None:
        raise BadInput(f"train: method {args.method} needs --corpus FILE.")
    corpus = (
        Dataset(path=args.corpus.name, sha256=sha256(args.corpus)) if method.needs_corpus else None
    )
    dev = sha256(data_root_or_default(args.data) / catalog.STSB_DEV) if method.is_trained else None
    recipe = Recipe(method=args.method, variant=args.variant, params=params, components=components)
    settings = RunSettings(precision=args.precision, threads=args.threads)
    given = Conditions({method.corpus: corpus}, dev, settings)
    return make_spec(recipe, find_encoder(args.encoder), size, args.seed, given, "--set")


def read_spec(text: str) -> Spec:
    """A spec from JSON text or from a JSON file; it must fit the declarations and versions of
    this code."""
    where = "spec" if text.lstrip().startswith("{") else text
    spec = validated(
        Spec, parse_json(text if where == "spec" else read_text(Path(text)), where), where
    )
    method = declaration(spec.method)
    if (spec.corpus is not None) != method.needs_corpus:
        raise BadInput(
            f"{where}: corpus: {spec.method} needs {'one' if method.needs_corpus else 'none'}."
        )
    if (spec.dev_sha256 is not None) != method.is_trained:
        raise BadInput(f"{where}: dev_sha256: a trained method needs one, any other none.")
    components = {
        name: (used, declaration(name, COMPONENTS)) for name, used in spec.components.items()
    }
    for key, given, current in (
        ("method_version", spec.method_version, method.version),
        ("trainer_version", spec.trainer_version, TRAINER_VERSION),
        *(
            (f"components.{name}.version", used.version, of.version)
            for name, (used, of) in components.items()
        ),
    ):
        if given != current:
            raise BadInput(
                f"{where}: {key}: is {given}; this code has version {current}: check out version"
                f" {given}."
            )
    codes = draft_codes(spec.method, spec.components)
    for unit in sorted({*spec.code, *codes}):
        if spec.code and spec.code.get(unit) != codes.get(unit):
            raise BadInput(
                f"{where}: code: that of {unit} is not the code that the spec was made with; make"
                " it anew."
            )
    filled = {
        name: used.model_copy(
            update={"params": fill(of, used.params, f"{where}: components: {name}")}
        )
        for name, (used, of) in components.items()
    }
    params = fill(method, method.unstated | spec.params, f"{where}: params: {method.name}")
    spec = spec.model_copy(update={"params": params, "components": filled, "code": codes})
    refuse_contradictions(spec, where)
    return spec


def find_encoder(name: str) -> EncoderRef:
    """An encoder by its name in config/ (with or without folder or owner), by a folder, or as
    ID@COMMIT."""
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
    raise unknown(
        "encoder", name, {ref.name for ref in known} | {"ID@COMMIT of the hub", "a model folder"}
    )


def find_model(name: str) -> str:
    """What `csebench evaluate` opens: a folder by its path, the model of a run by its id, an
    encoder of config/ at its pinned commit, or an id of the hub."""
    if folder_of(name) is not None:
        return as_path(name)
    if Path(name).exists() and not names_commit(name):
        raise BadInput(f"--model {name}: is a file; name the folder of a model.")
    if (catalog.RUNS / name / "model").is_dir():
        return str(catalog.RUNS / name / "model")
    if "/" in name and not any(name == ref.name for ref in known_encoders()):
        return name  # of the hub
    ref = find_encoder(name)
    return ref.name if local_folder(ref) else f"{ref.name}@{ref.revision}"


def known_encoders() -> list[EncoderRef]:
    return [
        ref for scale in catalog.scale_names() for ref in catalog.scale(scale).encoders.values()
    ]


def data_root_or_default(given: Path | None) -> Path | DataRoot:
    """The data root that a command line gives, else that of scale paper."""
    return given or catalog.data_root(catalog.scale("paper"))
