import { existsSync, globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { isSetting } from '../../../config/settings.ts';
import { allOperations } from '../../../tools/api-document.ts';

const ROOT = new URL('../../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');

/** For commands that cannot run here: their files, settings, commands and options are looked up where they are defined. */
const NAMES_ONLY = 'its names are looked up';
const OPERATING = 'test/deep/docs-operating.test.ts';
const BACKUP = 'test/deep/docs-backup.test.ts';
const FIRST_HOUR = 'test/deep/docs-issuing.test.ts';
const GUIDES = 'test/deep/docs-guides.test.ts';

/** The check of each command block, by page and heading. A new block must be added here. */
const BLOCK_CHECKS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'reference/operations.md': {
    'Operator shell': [OPERATING, OPERATING, OPERATING],
    Probes: [OPERATING],
    Sizes: [OPERATING],
    Clocks: [OPERATING],
    Logs: [OPERATING],
  },
  'guides/without-docker.md': {
    // test/deploy/package.test.ts builds, installs and starts the package in its own steps.
    '1. Install the package': [NAMES_ONLY],
    '2. Create database, settings and secrets': [OPERATING],
    '3. Install the systemd unit': [OPERATING],
    '5. Start': [OPERATING],
  },
  'guides/docker-compose.md': {
    // Tests run without a container engine and without a cluster.
    '1. Start': [NAMES_ONLY],
    '3. Keys in OpenBao (optional)': ['test/deploy/openbao.test.ts'],
    'Restart without interruption': [NAMES_ONLY],
    'The image alone': [NAMES_ONLY],
  },
  'guides/kubernetes.md': { '1. Install': [NAMES_ONLY], '3. Enable monitoring': [NAMES_ONLY] },
  'guides/several-machines.md': { '3. Restart one after the other': [OPERATING] },
  'guides/monitoring.md': { '1. Enable metrics': [OPERATING] },
  'guides/backup-and-restore.md': {
    'Make backups': [OPERATING],
    'Restore a lost database': [BACKUP, BACKUP, BACKUP, BACKUP],
    'The service reports history down': [BACKUP],
    'The start refuses, and nothing is missing': [BACKUP],
    'Anchors of the audit log': [OPERATING, OPERATING],
  },
  'guides/upgrade.md': { '3. Check': [OPERATING], 'From 0.2.0 or earlier on Kubernetes': [NAMES_ONLY] },
  'guides/rotate-secrets.md': {
    'Master secret': [OPERATING, OPERATING],
    'Operator secret': [OPERATING, OPERATING],
    'Client secrets': [OPERATING],
    'Webhook secrets': [OPERATING],
    'Metrics token': [OPERATING],
    'Database password': [OPERATING],
    'Identity provider client': [OPERATING],
    'RabbitMQ password': [OPERATING],
    'Vault login': [OPERATING],
    // The tool of OpenSC asks for both PINs interactively.
    'HSM PIN': [NAMES_ONLY],
    'TLS certificate': [OPERATING],
    'Tenant keys': [OPERATING],
    'Registrar login': [OPERATING],
  },
  'guides/incidents.md': {
    'Stolen signing key': [OPERATING],
    'Leaked client secret': [OPERATING, OPERATING],
    'Flooding tenant': [OPERATING, OPERATING, OPERATING],
    'Erasure request': [OPERATING, OPERATING, OPERATING],
    'Temporary tenant': [OPERATING],
  },
  // These pages have no commands. Operations and settings in their text are looked up.
  'guides/key-stores.md': {},
  'guides/certification.md': {},
  'reference/alerts.md': {},
  'reference/metrics.md': {},
  'reference/compatibility.md': {},
  'guides/issue-from-your-backend.md': {
    '1. Start the service': [GUIDES, GUIDES],
    '2. Create a tenant': [GUIDES, GUIDES],
    '4. Configure the credential': [GUIDES],
    '5. Create an offer': [GUIDES],
    '6. Collect it': [GUIDES],
  },
  'guides/verify-in-a-web-shop.md': {
    '1. Configure the presentation request': [GUIDES],
    '2. Create a client for the shop': [GUIDES],
    '3. Write the page': [GUIDES],
  },
  'guides/deferred-and-batch-issuance.md': { Batch: [GUIDES], Deferred: [GUIDES, GUIDES, GUIDES, GUIDES, GUIDES] },
  'guides/revoke.md': {
    '1. Choose the kind of status list': [GUIDES],
    '2. Issue a credential': [GUIDES],
    '3. Suspend it, and restore it': [GUIDES],
    '4. Revoke it': [GUIDES],
    '5. Revoke everything of a person': [GUIDES],
  },
  'guides/own-identity-provider.md': { '2. Configure the issuer': [GUIDES], '3. Create an offer': [GUIDES] },
  // test/deep/example-keycloak.test.ts runs the example, with a substitute if Keycloak is missing.
  'guides/keycloak.md': { 'Access tokens for your backends': [NAMES_ONLY, NAMES_ONLY, NAMES_ONLY] },
  'guides/haip-and-eu.md': {
    '1. See what would be rejected': [GUIDES],
    '2. Switch HAIP on': [GUIDES],
    '3. Trust wallet providers': [GUIDES],
    '4. Give requests a redirect address': [GUIDES],
  },
  'guides/first-hour.md': {
    Start: [FIRST_HOUR],
    'Two tenants': [FIRST_HOUR],
    'Issue a credential': [FIRST_HOUR],
    'Verify it': [FIRST_HOUR],
  },
};

/** Matches the paths of an operation with any parameters. */
const patternOf = (operation: string) => new RegExp(`^${operation.replaceAll(/:\w+/g, '[^/]+')}$`);
/** True for variables of the service, Node, Keycloak, the compose file and the image build. */
const isVariable = (name: string) =>
  isSetting(name) ||
  ['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'KC_HOSTNAME'].includes(name) ||
  read('deploy/compose.yaml').includes(`\${${name}:`) ||
  read('Dockerfile').includes(`ARG ${name}`);

type CommandBlock = { readonly heading: string; readonly text: string };

/** Returns the shell blocks of a page, including indented blocks of lists. */
function blocksOf(page: string): readonly CommandBlock[] {
  let heading = '';
  const blocks: CommandBlock[] = [];
  for (const [, title, text] of page.matchAll(/^#+ (.+)$|^ *```sh\n([\s\S]*?)\n *```$/gm)) {
    if (title !== undefined) heading = title;
    else blocks.push({ heading, text: text ?? '' });
  }
  return blocks;
}

const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const compose = parse(read('deploy/compose.yaml'), { merge: true, maxAliasCount: 50 });
const values = parse(read('deploy/helm/vidimus/values.yaml'));
/** Variables in the configurations of key stores. */
const keyStores = read('docs/reference/key-stores.md');
const dockerfile = read('Dockerfile');
const commands = read('bootstrap/commands/vidimus.mjs');
const schema = JSON.parse(read('deploy/helm/vidimus/values.schema.json'));

/** True if `--set` names a value of the chart or a setting of the service. */
function isValue(path: string): boolean {
  const [first = '', ...rest] = path.split('.');
  if (first === 'settings') return rest.length === 1 && isSetting(rest[0] ?? '');
  let node: unknown = values;
  for (const name of [first, ...rest]) {
    if (typeof node !== 'object' || node === null || !(name in node)) return false;
    node = (node as Record<string, unknown>)[name];
  }
  return first in schema.properties;
}

/** @returns names in a block that are not defined anywhere. */
function findUnknownNames(text: string): readonly string[] {
  const all = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = '']) => name);
  const files = all(/(?<![\w./<>-])((?:deploy|bootstrap|docs)\/[\w./-]+)/g).filter((path) => !path.startsWith('deploy/compose/secrets'));
  const npm = all(/npm run ([\w:]+)/g);
  const subcommands = all(/(?:npx vidimus|(?<![\w/-])vidimus\.mjs|^vidimus) ([a-z]+)/gm);
  const services = all(/docker compose [^\n]*?(?:exec|--wait) (?:-T )?(?:-e \w+ )?([a-z]+(?:-\d)?)(?= )/g);
  const loopValues = all(/for process in ([^;]+);/g).flatMap((list) => list.split(' '));
  return [
    ...files.filter((path) => !existsSync(new URL(path, ROOT))),
    ...npm.filter((name) => scripts[name] === undefined),
    ...subcommands.filter((name) => !new RegExp(`^  ${name}: \\{`, 'm').test(commands)),
    ...[...services, ...loopValues].filter((name) => !(name in compose.services)),
    ...all(/--set(?:-file)? ([\w.]+)=/g).filter((path) => !isValue(path)),
    ...all(/--build-arg (\w+)=/g).filter((name) => !dockerfile.includes(`ARG ${name}=`)),
    ...all(/-v \w+:(\/\w+)/g).filter((path) => !dockerfile.includes(`VOLUME ${path}`)),
    // Variables that the block assigns and uses.
    ...all(/^(?:put )?([A-Z]+(?:_[A-Z]+)+)[= ]/gm).filter(
      (name) => !isSetting(name) && !text.includes(`$${name}`) && !keyStores.includes(`\${${name}}`),
    ),
  ];
}

describe('commands of the guides for operators', () => {
  for (const [page, checks] of Object.entries(BLOCK_CHECKS)) {
    const blocks = blocksOf(read(`docs/${page}`));

    it(`${page}: each is typed by a test, or its names are looked up`, () => {
      const counts: Record<string, number> = {};
      for (const { heading } of blocks) counts[heading] = (counts[heading] ?? 0) + 1;
      expect(counts).to.deep.equal(Object.fromEntries(Object.entries(checks).map(([heading, tests]) => [heading, tests.length])));
      for (const test of new Set(Object.values(checks).flat())) if (test !== NAMES_ONLY) expect(read(test), test).to.include(page);
    });

    it(`${page}: names operations and settings in its sentences that there are`, async () => {
      const operations = await allOperations();
      const text = read(`docs/${page}`).replaceAll(/^ *```[\s\S]*?^ *```$/gm, '');
      // Shell variables that a command of the page sets.
      const exported = blocks.flatMap((block) =>
        [...block.text.matchAll(/^export (.+)$/gm)].flatMap(([, line = '']) => line.match(/\b[A-Z_]+(?==)/g) ?? []),
      );
      for (const [, method, path = ''] of text.matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/[^\s?`]*)/g))
        expect(
          operations.some((each) => patternOf(each).test(`${method} ${path}`)),
          `${method} ${path}`,
        ).to.equal(true);
      for (const [, name = ''] of text.matchAll(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`/g))
        expect(isVariable(name) || exported.includes(name), name).to.equal(true);
    });

    it(`${page}: names files, settings, commands and options that there are`, () => {
      for (const { heading, text } of blocks) expect(findUnknownNames(text), heading).to.deep.equal([]);
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
      expect(findUnknownNames(text), text).to.deep.equal([unknown]);
  });

  it('run programs with the Node of npm, whatever else is called node', () => {
    const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md'], { cwd: ROOT });
    const nodeCommands = pages.flatMap((page) => read(page).match(/^node .*$/gm) ?? []);
    expect(nodeCommands).to.deep.equal([]);
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
