import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** Variables by which this machine reaches its packages: certificates, proxies and the npm cache. */
const REACHES_PACKAGES = /^(npm_config_.*|node_extra_ca_certs|ssl_cert_(file|dir)|(https?|no)_proxy)$/i;

/** Parses a Dockerfile into instructions without comments. */
export type Instruction = { readonly name: string; readonly text: string };

export function parseDockerfile(file: string): readonly Instruction[] {
  const text = readFileSync(file, 'utf8')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '');
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
      return { name, text: rest };
    });
}

export type Image = {
  /** Folder on this machine that is the root of the image. */
  readonly root: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly workingFolder: string;
  readonly command: readonly string[];
  readonly healthCommand: readonly string[];
};

/**
 * Executes a Dockerfile in a folder instead of a container. The machine replaces the base image, and paths of the image are
 * below `folder`.
 */
export function buildImage(context: string, folder: string): Image {
  const stages = new Map<string, Stage>();
  let stage = new Stage(join(folder, 'none'));
  for (const { name, text } of parseDockerfile(join(context, 'Dockerfile'))) {
    if (name === 'FROM') {
      const alias = /\bAS (\S+)$/.exec(text)?.[1] ?? 'image';
      stage = new Stage(join(folder, alias));
      stages.set(alias, stage);
    } else if (name === 'COPY') stage.copy(text, context, stages);
    else stage.run(name, text);
  }
  return stage;
}

/** The top-level folders of the image; all other folders are those of the machine. */
const IMAGE_FOLDERS = /(?<![\w.])\/(app|data)(?=[\s/'"]|$)/g;

class Stage implements Image {
  readonly root: string;
  readonly environment: Record<string, string> = {};
  workingFolder: string;
  command: readonly string[] = [];
  healthCommand: readonly string[] = [];

  constructor(root: string) {
    this.root = root;
    this.workingFolder = root;
    mkdirSync(root, { recursive: true });
  }

  run(name: string, text: string): void {
    const hostPath = text.replaceAll(IMAGE_FOLDERS, `${this.root}/$1`);
    switch (name) {
      case 'WORKDIR':
        this.workingFolder = hostPath;
        mkdirSync(hostPath, { recursive: true });
        break;
      case 'ENV':
        for (const [, key = '', value = ''] of text.matchAll(/(\S+?)=(\S+)/g))
          this.environment[key] = value.replaceAll(IMAGE_FOLDERS, `${this.root}/$1`);
        break;
      case 'RUN':
        this.#run(hostPath);
        break;
      case 'CMD':
        this.command = JSON.parse(text) as string[];
        break;
      case 'HEALTHCHECK':
        this.healthCommand = JSON.parse(text.slice(text.indexOf('['))) as string[];
        break;
      default:
        if (!['ARG', 'USER', 'VOLUME', 'EXPOSE'].includes(name)) throw new Error(`${name} is not known here`);
    }
  }

  copy(text: string, context: string, stages: ReadonlyMap<string, Stage>): void {
    const commandParts = text.split(/\s+/);
    const stageName = commandParts[0]?.startsWith('--from=') ? commandParts.shift()?.slice('--from='.length) : undefined;
    const source = stageName === undefined ? context : (stages.get(stageName)?.root ?? '');
    const target = commandParts.pop() ?? '';
    const ignored = stageName === undefined ? readFileSync(join(context, '.dockerignore'), 'utf8').split('\n') : [];
    for (const sourceName of commandParts) {
      const path = join(source, sourceName);
      const name = sourceName === '.' ? '' : sourceName;
      const isFolder = target.endsWith('/');
      const targetPath = resolve(this.workingFolder, isFolder ? join(target, name.split('/').at(-1) ?? '') : target);
      mkdirSync(dirname(targetPath), { recursive: true });
      const filter = (file: string) => !ignored.includes(file.slice(context.length).replace(/^\/+/, '') || '.');
      for (const each of sourceName === '.' ? globSync('*', { cwd: path }).concat(globSync('.[a-z]*', { cwd: path })) : [''])
        if (filter(join(path, each)))
          cpSync(join(path, each), each === '' ? targetPath : join(targetPath, each), { recursive: true, filter, verbatimSymlinks: true });
    }
  }

  /** Changing the owner of files needs the rights of the container engine. */
  #run(command: string): void {
    const tools = join(this.root, '.tools');
    mkdirSync(tools, { recursive: true });
    if (process.getuid?.() !== 0) writeFileSync(join(tools, 'chown'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    const machineEnvironment = Object.entries(process.env).filter(([name]) => REACHES_PACKAGES.test(name));
    const env = {
      ...Object.fromEntries(machineEnvironment),
      ...this.environment,
      HOME: process.env['HOME'],
      PATH: `${tools}:${process.env['PATH']}`,
      // The download cache of `npm ci` is reused.
      npm_config_prefer_offline: 'true',
    };
    execFileSync('/bin/sh', ['-euc', command], { cwd: this.workingFolder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  }
}
