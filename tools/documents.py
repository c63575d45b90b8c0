"""Checks that what documents name exists: links and anchors, commands and options of muster, environment variables.

Used by tools/check. Each check_… yields (line, what is wrong); none prints.
"""
import re

FENCE = re.compile(r'^\s*(```|~~~)')
INLINE = re.compile(r'`([^`\n]+)`')
LINK = re.compile(r'!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)')
TAG = re.compile(r'<(?:img|a)\b[^>]*\b(?:src|href)="([^"]+)"')
OUTSIDE = re.compile(r'^[a-z][a-z0-9+.-]*:', re.I)  # https:, mailto:
HEADING = re.compile(r'^#{1,6}\s+(.*?)\s*#*$')
COMMAND = re.compile(r'(?:^|[|;&(]\s*|\$ )\s*(?:[A-Z_]+=\S* )*(?:[\w./~$-]*/)?muster ([a-z][a-z-]*)([^|;&#>\n]*)')
MESSAGE = re.compile(r'\bmuster ([a-z]+)((?: +-[\w=-]+| +[A-Z%][\w%:/.=-]*)+)')
OPTION = re.compile(r'\bOPTION\("([\w-]+)", (?:\'(\w)\'|0)')
FLAG = re.compile(r'\bFLAG\("([\w-]+)"')  # options of ElasticDL's command, in either spelling
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
VARIABLE = re.compile(r'(?<![\w])MUSTER_[A-Z0-9_]*[A-Z0-9](?!\w)')
READ = re.compile(r'(?:getenv\(|object_set_new\(env, |environ(?:\.get)?[\[(]\s*)["\'](MUSTER_\w+)["\']')
PROGRAMS = {'daemon', 'keep', 'supervisor'}  # programs that muster starts by itself
KUBECTL = {'dry-run', 'filename', 'output', 'namespace', 'timeout', 'help', 'env', 'name'}  # options that kubectl has, too
GENERATED = {'--markdown', '--man', '--completion'}  # options of `muster help`, for the build


def code_lines(text):
    """Yields (line, code) for every line in a fence and for every `…` outside."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif fenced:
            yield number, line
        else:
            for match in INLINE.finditer(line):
                yield number, match.group(1)


def prose_lines(text):
    """Yields (line, text without its code) for every line outside fences."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(text):
    """Returns the anchors of a page's headings, made as the forges make them."""
    found, seen = set(), {}
    for _, line in prose_lines(text):
        match = HEADING.match(line)
        if match:
            title = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', match.group(1))
            slug = re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-')
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            found.add(f'{slug}-{count}' if count else slug)
    return found


def check_links(path, text):
    """Each relative link refers to an existing file, and its #anchor to a heading there."""
    for number, line in prose_lines(text):
        line = INLINE.sub('', line)
        for target in LINK.findall(line) + TAG.findall(line):
            if OUTSIDE.match(target):
                continue
            name, _, anchor = target.partition('#')
            file = (path.parent / name) if name else path
            if not file.exists():
                yield number, f'the link to {target} leads nowhere'
            elif anchor and file.suffix == '.md' and anchor not in anchors(file.read_text()):
                yield number, f'{file.name} has no heading for #{anchor}'


def options_in(text):
    """Returns {'--option', '-o', …} of the OPTION rows in a part of commands.def."""
    rows = OPTION.findall(text)
    flags = {f'--{name.replace("_", dash)}' for name in FLAG.findall(text) for dash in '-_'}
    return flags | {f'--{name}' for name, _ in rows} | {f'-{letter}' for _, letter in rows if letter}


def read_commands(text):
    """Returns {verb: {'--option', '-o', …}} of commands.def and the files that it includes, with the options of its macros."""
    commands, macros, verb = {}, {}, None
    for line in text.replace('\\\n', ' ').splitlines():
        start = re.match(r'(?:COMMAND|PROGRAM)\((\w+)', line)
        define = re.match(r'#define (\w+)', line)
        used = re.match(r'(\w+)', line)
        if define:
            macros[define.group(1)] = options_in(line)
        elif start:
            verb = start.group(1)
            commands[verb] = {'--help', '-h'}
        elif verb and used:
            commands[verb] |= macros.get(used.group(1), set()) | options_in(line)
    commands.get('help', set()).update(GENERATED)
    return commands


def wrong_options(verb, words, commands):
    """Yields the options among the words that the verb does not have; words after -- belong to another program."""
    for word in re.sub(r"'[^']*'|\"[^\"]*\"", 'X', words).split():
        if word == '--':
            return
        name = word.split('=')[0].rstrip(',.:)]…')
        if re.fullmatch(r'--[a-z][\w-]*', name) or re.fullmatch(r'-[a-zA-Z]', name):
            if name not in commands[verb]:
                yield f'muster {verb} has no option {name} (src/cli/command/commands.def)'


def check_commands(text, commands):
    """Each `muster VERB --option` in code is one that the command line has."""
    for number, code in code_lines(text):
        for verb, words in COMMAND.findall(code):
            if verb in PROGRAMS:
                continue
            if verb not in commands:
                yield number, f'there is no muster {verb} (src/cli/command/commands.def)'
            else:
                for fault in wrong_options(verb, words, commands):
                    yield number, fault


def check_messages(text, commands):
    """The same in the texts of a source file, where words may follow: only words that look like options and operands count."""
    for number, line in enumerate(text.splitlines(), 1):
        for string in STRING.findall(line):
            for verb, words in MESSAGE.findall(string):
                if verb in commands:
                    for fault in wrong_options(verb, words, commands):
                        yield number, fault


def check_advice(text, commands):
    """Messages of the API, the operator and the kubelet, which kubectl prints, too, name no option that only muster has."""
    only_ours = {word for verb in ('run', 'create') for word in commands[verb] if word.startswith('--')} - {f'--{name}' for name in KUBECTL}
    for number, line in enumerate(text.splitlines(), 1):
        for string in STRING.findall(line):
            for word in re.findall(r'--[a-z][a-z-]*', string):
                if word in only_ours:
                    yield number, f'kubectl has no {word}: say what the object needs (src/cli/submit/refusal.c adds options)'


def variables_read(text):
    """Yields (line, name) for each environment variable of muster that the source reads, or sets for ranks."""
    for number, line in enumerate(text.splitlines(), 1):
        for name in READ.findall(line):
            yield number, name


def check_variables(text, known):
    """Each MUSTER_… that a document names is in the source."""
    for number, line in enumerate(text.splitlines(), 1):
        for name in VARIABLE.findall(line):
            if name not in known:
                yield number, f'{name} is not in the source'
