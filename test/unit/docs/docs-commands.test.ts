import { existsSync, globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { isSetting } from '../../../config/settings.ts';
import { allOperations } from '../../../tools/api-document.ts';

const ROOT = new URL('../../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');

/** What cannot be run here: its files, settings, commands and options are looked up where they are defined. */
const NAMES = 'its names are looked up';
const OPERATING = 'test/deep/docs-operating.test.ts';
const BACKUP = 'test/deep/docs-backup.test.ts';
const FIRST_HOUR = 'test/deep/docs-issuing.test.ts';

/** By page, heading by heading: how each of its commands is held to what it says. A block that is new is missing here. */
const HELD: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'guides/operating.md': {
    'What the commands need': [OPERATING, OPERATING, OPERATING],
    'The first start in production': [OPERATING, OPERATING],
    'Sizes, and what grows': [OPERATING],
    Backups: [OPERATING],
    'Upgrade, and going back': [OPERATING],
    'Draining and rolling restarts': [OPERATING],
    Probes: [OPERATING],
    'The master secret': [OPERATING, OPERATING],
    "The operator's secret": [OPERATING, OPERATING],
    'Secrets of clients': [OPERATING],
    'Secrets of webhooks': [OPERATING],
    'The token of metrics': [OPERATING],
    'The password of the database': [OPERATING],
    'The client of the identity provider': [OPERATING],
    'The password of RabbitMQ': [OPERATING],
    'The login at Vault': [OPERATING],
    // The tool of OpenSC asks a person for both PINs.
    'The PIN of an HSM': [NAMES],
    'The certificate of TLS': [OPERATING],
    'Keys of tenants': [OPERATING],
    'The login at a registrar': [OPERATING],
    Clocks: [OPERATING],
    Logs: [OPERATING],
    'A tenant that floods': [OPERATING, OPERATING, OPERATING],
    'A tenant for a while': [OPERATING],
    'A client secret that leaked': [OPERATING, OPERATING],
    'A signing key that is compromised': [OPERATING],
    'Somebody asks for erasure': [OPERATING, OPERATING, OPERATING],
    'Anchors of the audit log': [OPERATING, OPERATING],
  },
  'guides/backup-and-restore.md': { 'At three in the morning': Array.from({ length: 6 }, () => BACKUP) },
  'guides/first-hour.md': {
    Start: [FIRST_HOUR],
    'Two tenants': [FIRST_HOUR],
    'A type, and a webhook of your own': [FIRST_HOUR],
    'A question': [FIRST_HOUR],
  },
  'guides/upgrade.md': { 'The record of how far the database is': [NAMES] },
  'guides/installing.md': {
    // The package is made, installed and started by test/deploy/package.test.ts, by steps of its own.
    'A package': [NAMES],
    systemd: [OPERATING],
    // There is no engine for containers, and no cluster, where tests run.
    'An image': [NAMES],
    Compose: [NAMES, 'test/deploy/openbao.test.ts', NAMES],
    Helm: [NAMES, NAMES],
  },
};

/** Of an operation, whatever stands for its parameters. */
const patternOf = (operation: string) => new RegExp(`^${operation.replaceAll(/:\w+/g, '[^/]+')}$`);
/** Of the service, of Node, of the compose file, or of the build of the image. */
const isVariable = (name: string) =>
  isSetting(name) ||
  ['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS'].includes(name) ||
  read('deploy/compose.yaml').includes(`\${${name}:`) ||
  read('Dockerfile').includes(`ARG ${name}`);

type Found = { readonly heading: string; readonly text: string };

/** Of a list too, whose blocks are set in. */
function blocksOf(page: string): readonly Found[] {
  let heading = '';
  const found: Found[] = [];
  for (const [, title, text] of page.matchAll(/^#+ (.+)$|^ *```sh\n([\s\S]*?)\n *```$/gm)) {
    if (title !== undefined) heading = title;
    else found.push({ heading, text: text ?? '' });
  }
  return found;
}

const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const compose = parse(read('deploy/compose.yaml'), { merge: true, maxAliasCount: 50 });
const values = parse(read('deploy/helm/vidimus/values.yaml'));
/** Variables that a configuration of key stores takes. */
const keyStores = read('docs/reference/key-stores.md');
const dockerfile = read('Dockerfile');
const commands = read('bootstrap/commands/vidimus.mjs');
const schema = JSON.parse(read('deploy/helm/vidimus/values.schema.json'));

/** Where `--set` leads in the values of the chart; settings are the service's own. */
function isValue(path: string): boolean {
  const [first = '', ...rest] = path.split('.');
  if (first === 'settings') return rest.length === 1 && isSetting(rest[0] ?? '');
  let at: unknown = values;
  for (const name of [first, ...rest]) {
    if (typeof at !== 'object' || at === null || !(name in at)) return false;
    at = (at as Record<string, unknown>)[name];
  }
  return first in schema.properties;
}

/** @returns what a block names and nobody has. */
function unknownIn(text: string): readonly string[] {
  const all = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = '']) => name);
  const files = all(/(?<![\w./<>-])((?:deploy|bootstrap|docs)\/[\w./-]+)/g).filter((path) => !path.startsWith('deploy/compose/secrets'));
  const npm = all(/npm run ([\w:]+)/g);
  const own = all(/(?:npx vidimus|(?<![\w/-])vidimus\.mjs|^vidimus) ([a-z]+)/gm);
  const services = all(/docker compose [^\n]*?(?:exec|--wait) (?:-T )?(?:-e \w+ )?([a-z]+(?:-\d)?)(?= )/g);
  const loops = all(/for process in ([^;]+);/g).flatMap((list) => list.split(' '));
  return [
    ...files.filter((path) => !existsSync(new URL(path, ROOT))),
    ...npm.filter((name) => scripts[name] === undefined),
    ...own.filter((name) => !new RegExp(`^  ${name}: \\{`, 'm').test(commands)),
    ...[...services, ...loops].filter((name) => !(name in compose.services)),
    ...all(/--set(?:-file)? ([\w.]+)=/g).filter((path) => !isValue(path)),
    ...all(/--build-arg (\w+)=/g).filter((name) => !dockerfile.includes(`ARG ${name}=`)),
    ...all(/-v \w+:(\/\w+)/g).filter((path) => !dockerfile.includes(`VOLUME ${path}`)),
    // What the block itself uses again is a variable of its own.
    ...all(/^(?:put )?([A-Z]+(?:_[A-Z]+)+)[= ]/gm).filter(
      (name) => !isSetting(name) && !text.includes(`$${name}`) && !keyStores.includes(`\${${name}}`),
    ),
  ];
}

describe('commands of the guides for operators', () => {
  for (const [page, held] of Object.entries(HELD)) {
    const blocks = blocksOf(read(`docs/${page}`));

    it(`${page}: each is typed by a test, or its names are looked up`, () => {
      const counts: Record<string, number> = {};
      for (const { heading } of blocks) counts[heading] = (counts[heading] ?? 0) + 1;
      expect(counts).to.deep.equal(Object.fromEntries(Object.entries(held).map(([heading, how]) => [heading, how.length])));
      for (const test of new Set(Object.values(held).flat())) if (test !== NAMES) expect(read(test), test).to.include(page);
    });

    it(`${page}: names operations and settings in its sentences that there are`, async () => {
      const operations = await allOperations();
      const text = read(`docs/${page}`).replaceAll(/^ *```[\s\S]*?^ *```$/gm, '');
      for (const [, method, path = ''] of text.matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/[^\s?`]*)/g))
        expect(
          operations.some((each) => patternOf(each).test(`${method} ${path}`)),
          `${method} ${path}`,
        ).to.equal(true);
      for (const [, name = ''] of text.matchAll(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`/g))
        expect(isVariable(name), name).to.equal(true);
    });

    it(`${page}: names files, settings, commands and options that there are`, () => {
      for (const { heading, text } of blocks) expect(unknownIn(text), heading).to.deep.equal([]);
    });
  }

  it('are validated: unknown names are found', () => {
    for (const [text, unknown] of [
      ['helm upgrade v deploy/helm/vidimus --set metrics.enabeld=true', 'metrics.enabeld'],
      ['helm install v deploy/helm/vidimus --set settings.PUBLIC_URI=x', 'settings.PUBLIC_URI'],
      ['helm install v deploy/helm/vidimuss', 'deploy/helm/vidimuss'],
      ['docker compose -f deploy/compose.yaml exec vidimus-3 node', 'vidimus-3'],
      ['docker build --build-arg NODE=x .', 'NODE'],
      ['npm run re:seal', 're:seal'],
      ['npx vidimus docter', 'docter'],
      ['MASTER_SECRETS=x', 'MASTER_SECRETS'],
    ] as const)
      expect(unknownIn(text), text).to.deep.equal([unknown]);
  });

  it('run programs with the Node of npm, whatever else is called node', () => {
    const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md'], { cwd: ROOT });
    const bare = pages.flatMap((page) => read(page).match(/^node .*$/gm) ?? []);
    expect(bare).to.deep.equal([]);
  });

  it('every page is reached from the README, or from one that is', () => {
    const reached = new Set(['README.md']);
    for (const page of reached) {
      for (const [, target = ''] of read(page).matchAll(/\]\((?![a-z]+:)([^)#\s]+\.md)/g)) {
        const path = new URL(target, new URL(page, ROOT)).href.slice(ROOT.href.length);
        if (existsSync(new URL(path, ROOT))) reached.add(path);
      }
    }
    const pages = globSync('docs/**/*.md', { cwd: ROOT });
    expect(pages.filter((page) => !reached.has(page))).to.deep.equal([]);
  });
});
