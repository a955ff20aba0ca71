import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { isSetting } from '../../../config/settings.ts';
import { CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import { IssuanceConfigurationBody } from '../../../domain/issuance/issuance-configuration.ts';
import {
  FAILURE_REFERENCE,
  REFUSAL_REFERENCE,
  SESSION_FAILURE_REFERENCE,
  WEBHOOK_FAULT_REFERENCE,
} from '../../../domain/shared/error-reference.ts';
import { FAILURE_CODES } from '../../../domain/shared/failure.ts';
import { REFUSAL_REASONS } from '../../../domain/shared/refusal.ts';
import { SESSION_FAILURE_CODES } from '../../../domain/shared/session-failure.ts';
import { WEBHOOK_FAULTS } from '../../../domain/shared/webhook-fault.ts';
import { PresentationConfigurationBody } from '../../../domain/verification/configuration.ts';
import { allOperations } from '../../../tools/api-document.ts';
import { describeErrors } from '../../../tools/describe-errors.ts';
import { describeSettings } from '../../../tools/describe-settings.ts';
import { withCodes } from '../../../tools/write-test-codes.ts';

const ROOT = new URL('../../../', import.meta.url);
const pageOf = (file: string | URL) => readFileSync(new URL(file, ROOT), 'utf8');
const MAX_GUIDE_WORDS = 800;
const guides = globSync('docs/guides/*.md', { cwd: ROOT });
const manifest = JSON.parse(pageOf('package.json')) as { scripts: Record<string, string> };

describe('the README', () => {
  it('is a front door: two sentences, a picture, two commands, and where to go', () => {
    const readme = pageOf('README.md');
    expect(readme.split('\n').length).to.be.at.most(60);
    expect(readme).to.match(/!\[[^\]]{20,}\]\(docs\/images\/playground\.png\)/);
    expect(readme).to.include('npm ci && npm run demo').and.to.include('npm ci && npm test');
  });

  it('leads to a page that documents every setting as the schema does', () => {
    const table = pageOf('docs/reference/settings.md').split('<!-- settings -->')[1]?.split('<!-- /settings -->')[0]?.trim();
    expect(table).to.equal(describeSettings());
  });

  it('names commands that exist, and so do the pages about them', () => {
    const pages = ['README.md', ...guides, 'docs/reference/commands.md'].map(pageOf).join('\n');
    const scripts = [...pages.matchAll(/`npm run ([a-z:]+)/g)].map((match) => match[1] ?? '');
    for (const name of scripts) expect(manifest.scripts, name).to.have.property(name);
  });
});

describe('the pages', () => {
  const pages = globSync('{*.md,{docs,deploy,config,examples}/**/*.md,test/*.md}', { cwd: ROOT });
  const anchorsOf = (text: string) =>
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .trim()
        .replaceAll(' ', '-'),
    );

  it('are all in the table of contents', () => {
    const contents = pageOf('docs/README.md');
    const names = pages.flatMap((page) => /^docs\/((?:guides\/|reference\/)?[\w-]+\.md)$/.exec(page)?.[1] ?? []);
    expect(names).to.have.length.greaterThan(30);
    for (const name of names.filter((file) => file !== 'README.md')) expect(contents, name).to.include(`](${name})`);
  });

  it('have at most 800 words of text if they are guides', () => {
    for (const guide of guides) {
      const words = pageOf(guide)
        .replaceAll(/^ *```[\s\S]*?^ *```$|`[^`]*`/gm, '')
        .split(/\s+/);
      expect(words.length, guide).to.be.at.most(MAX_GUIDE_WORDS);
    }
  });

  it('lead to pages and headings that there are', () => {
    expect(pages).to.include.members(['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'docs/guides/without-docker.md']);
    for (const page of pages) {
      const text = pageOf(page);
      for (const [, file = '', anchor] of text.matchAll(/\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)/g)) {
        const target = file === '' ? new URL(page, ROOT) : new URL(file, new URL(page, ROOT));
        expect(existsSync(target), `${page} leads to ${file}`).to.equal(true);
        if (anchor !== undefined && target.pathname.endsWith('.md'))
          expect(anchorsOf(pageOf(target)), `${page} leads to ${file}`).to.include(anchor);
      }
    }
  });
});

describe('the image', () => {
  it('starts the service by the launcher', () => {
    const [, command = ''] = /^CMD (\[.*\])$/m.exec(pageOf('Dockerfile')) ?? [];
    expect(JSON.parse(command)).to.deep.equal(['node', 'bootstrap/commands/vidimus.mjs', 'start']);
  });
});

const ARCHITECTURE_PAGES = [
  ...readdirSync(new URL('docs/architecture', ROOT)).map((page) => `docs/architecture/${page}`),
  'CONTRIBUTING.md',
  'SECURITY.md',
];
/** Paths in backticks, without placeholders and patterns. */
const PATH = /`((?:domain|application|adapters|bootstrap|config|tools|test|docs)\/[\w./-]*)`/g;

describe('The pages on the architecture', () => {
  for (const page of ARCHITECTURE_PAGES) {
    it(`${page} names existing files and folders`, () => {
      const text = pageOf(page);
      const missing = Array.from(text.matchAll(PATH), ([, path = '']) => path).filter((path) => !existsSync(new URL(path, ROOT)));
      expect(missing).to.deep.equal([]);
    });
  }

  it('list every decision', () => {
    const files = readdirSync(new URL('docs/decisions', ROOT)).filter((file) => file !== 'README.md');
    const listed = pageOf('docs/decisions/README.md');
    expect(files.filter((file) => !listed.includes(`(${file})`))).to.deep.equal([]);
  });
});

describe('docs/dependencies.md', () => {
  it('has each dependency of each manifest', () => {
    const page = pageOf('docs/dependencies.md');
    const manifests = ['package.json', ...readdirSync(new URL('packages', ROOT)).map((name) => `packages/${name}/package.json`)];
    const names = manifests.flatMap((file) => {
      const content = JSON.parse(pageOf(file)) as Record<string, Record<string, string> | undefined>;
      const kinds = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'];
      return kinds.flatMap((kind) => Object.keys(content[kind] ?? {}));
    });
    const isListed = (name: string) => page.includes(`\`${name}\``) || page.includes(`\`${name.split('/')[0]}/*\``);
    expect(names.length).to.be.greaterThan(50);
    expect(names.filter((name) => !isListed(name) && !name.startsWith('@vidimus/'))).to.deep.equal([]);
  });
});

describe('The page on the tests', () => {
  it('lists every code of a negative case in a comment above a test', () => {
    const page = pageOf('test/README.md');
    expect(withCodes(page, ROOT), 'npm run docs:test-codes').to.equal(page);
  });
});

describe('the page about security', () => {
  const page = pageOf('docs/reference/security.md');

  it('names tests and pages that exist', () => {
    const paths = [...page.matchAll(/`((?:test|docs)\/[\w./-]+)`/g)].map(([, path = '']) => path);
    const linked = [...page.matchAll(/\]\(([\w./-]+)\)/g)].map(([, path = '']) => `docs/reference/${path}`);
    expect(paths.length).to.be.greaterThan(40);
    for (const path of [...paths, ...linked]) expect(existsSync(new URL(path, ROOT)), path).to.equal(true);
  });

  it('has a test for each answer', () => {
    const [, threats = ''] = page.split('\n## Network\n');
    const answers = threats.split('\n## Left to the operator')[0]?.split('\n- ').slice(1) ?? [];
    expect(answers.length).to.be.greaterThan(50);
    for (const answer of answers) expect(answer).to.match(/`(test|docs)\//);
  });
});

/** The part of a page below a heading, up to the next. */
function sectionOf(text: string, heading: string): string {
  const [, section = ''] = text.split(`\n## ${heading}\n`);
  return section.split('\n## ')[0] ?? '';
}

/** The codes that begin the list items of a text. */
const codesIn = (text: string) => [...text.matchAll(/^- `([a-z0-9_]+)`/gm)].map(([, code = '']) => code);

async function expectNamesOfService(text: string): Promise<void> {
  const operations = await allOperations();
  for (const [, method, path = ''] of text.matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/[^\s?`]*)/g)) {
    const pattern = (operation: string) => new RegExp(`^${operation.replaceAll(/:\w+/g, '[^/]+')}$`);
    const exists = operations.some((operation) => pattern(operation).test(`${method} ${path}`));
    expect(exists, `${method} ${path}`).to.equal(true);
  }
  for (const [, name = ''] of text.matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g)) expect(isSetting(name), name).to.equal(true);
}

describe('the reference of errors', () => {
  const page = pageOf('docs/reference/errors.md');
  const tables = {
    failures: FAILURE_REFERENCE,
    'failures of sessions': SESSION_FAILURE_REFERENCE,
    'webhook faults': WEBHOOK_FAULT_REFERENCE,
    'rejected presentations': REFUSAL_REFERENCE,
  };

  it('is the page that `npm run docs:errors` generates', () => {
    const [, generated = ''] = page.split(/<!-- \/?errors -->/);
    expect(generated.trim()).to.equal(describeErrors());
  });

  it('has every code once in its section of the page', () => {
    const calls = ['Rejected calls', 'Rejected wallet requests'].flatMap((heading) => codesIn(sectionOf(page, heading)));
    expect(calls).to.have.members([...FAILURE_CODES, 'internal_error']);
    expect(codesIn(sectionOf(page, 'Failed sessions'))).to.have.members([...SESSION_FAILURE_CODES]);
    expect(codesIn(sectionOf(page, 'Failed webhooks'))).to.have.members([...WEBHOOK_FAULTS]);
    expect(codesIn(sectionOf(page, 'Rejected presentations'))).to.have.members([...REFUSAL_REASONS]);
  });

  for (const [name, table] of Object.entries(tables)) {
    it(`has a meaning, a sentence on the fix, and none or one on the cause, for ${name}`, () => {
      for (const [code, { meaning, cause, fix }] of Object.entries(table)) {
        expect(meaning, code).to.match(/^[A-Z`][^|\n]*[^.\s]$/);
        expect(cause, code).to.match(/^([A-Z`][^|\n]*\.)?$/);
        expect(fix, code).to.match(/^[A-Z`][^|\n]*\.$/);
      }
    });
  }

  it('names operations and settings that exist', async () => {
    await expectNamesOfService(page);
  });
});

describe('the page about troubleshooting', () => {
  const text = pageOf('docs/reference/troubleshooting.md');

  it('links to the lists of codes', () => {
    for (const anchor of ['rejected-calls', 'rejected-wallet-requests', 'failed-sessions', 'failed-webhooks', 'rejected-presentations'])
      expect(text).to.include(`(errors.md#${anchor})`);
  });

  it('leads from each symptom to a section, whose entries name a cause and a fix', () => {
    const [symptoms = '', ...sections] = text.split(/\n## /);
    const targets = [...symptoms.matchAll(/\]\(#([\w-]+)\)/g)].map(([, anchor = '']) => anchor);
    expect(targets).to.have.length.greaterThan(5);
    for (const anchor of targets) {
      const section = sections.find((candidate) => candidate.split('\n')[0]?.toLowerCase().replaceAll(' ', '-') === anchor);
      expect(section, anchor).to.be.a('string');
      const entries = (section ?? '').split('\n\n').filter((block) => block.startsWith('- '));
      for (const entry of entries.flatMap((block) => block.split('\n- '))) expect(entry).to.match(/^\S.*:\s+\S[\s\S]*\s\*Fix:\*\s+\S/);
    }
  });

  it('names codes, operations and settings that exist', async () => {
    const codes: readonly string[] = [
      ...SESSION_FAILURE_CODES,
      ...FAILURE_CODES,
      ...WEBHOOK_FAULTS,
      ...REFUSAL_REASONS,
      ...['internal_error', 'credential_issuer'],
    ];
    const [beforeRewinds = ''] = text.split('\n## The database went back in time');
    for (const [, code = ''] of beforeRewinds.matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)) expect(codes).to.include(code);
    await expectNamesOfService(beforeRewinds);
  });
});

const CERTIFICATION = pageOf('docs/guides/certification.md');

/** Names in backticks before the colon of each setting. */
function settingsOfIssuers(): string[] {
  const [, list = ''] = CERTIFICATION.split('\nSettings:\n\n');
  const entries = list.split('\n\n')[0]?.split(/^- /m) ?? [];
  return entries.flatMap((entry) => {
    const [first = ''] = entry.split(': ');
    return [...first.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
  });
}

describe('docs/guides/certification.md', () => {
  it('names settings of issuers that exist', () => {
    const propertyNames = [...Object.keys(IssuanceConfigurationBody.shape), ...Object.keys(CredentialConfigurationBody.shape)];
    const names = settingsOfIssuers();
    expect(names).to.have.length.above(10);
    expect(propertyNames).to.include.members(names);
  });

  it('names settings of verifiers that exist', () => {
    const [, section = ''] = CERTIFICATION.split('## Plans for verifiers');
    const properties = Object.keys(PresentationConfigurationBody.shape);
    for (const name of [
      ...['trustAnchors', 'redirectUri', 'responseMode', 'clientIdPrefix', 'requestUriMethod'],
      ...['mdlProfile', 'clientName', 'logoUri'],
    ]) {
      expect(section).to.include(name);
      expect(properties).to.include(name);
    }
  });

  it('names the element ids of the approval page', () => {
    const page = pageOf('adapters/http/pages/consent-page.ts');
    for (const id of ['approve', 'deny']) {
      expect(CERTIFICATION).to.include(`\`${id}\``);
      expect(page).to.include(`id="${id}"`);
    }
  });
});
