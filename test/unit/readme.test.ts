import { existsSync, globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { describeSettings } from '../../config/describe-settings.ts';
import { startOptions } from '../support/start-options.ts';

const pageOf = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
};

describe('the README', () => {
  it('is a front door: two sentences, a picture, two commands, and where to go', () => {
    const readme = pageOf('README.md');
    expect(readme.split('\n').length).to.be.at.most(60);
    expect(readme).to.match(/!\[[^\]]{20,}\]\(docs\/images\/playground\.png\)/);
    expect(readme).to.include('npm ci && npm run demo').and.to.include('npm ci && npm test');
  });

  it('leads to a page that documents every setting as the schema does', () => {
    const table = pageOf('docs/settings.md')
      .split('<!-- settings -->')[1]
      ?.split('<!-- /settings -->')[0]
      ?.trim();
    expect(table).to.equal(describeSettings());
  });

  it('leads to a page that names every production package with its reason', () => {
    const page = pageOf('docs/dependencies.md');
    const families = Object.keys(manifest.dependencies).map((name) =>
      name.replace(/^(@mikro-orm)\/.*/, '$1/*'),
    );
    for (const name of families) expect(page, name).to.contain(`\`${name}\``);
  });

  it('names commands that exist, and so do the pages about them', () => {
    const pages = ['README.md', 'docs/running.md', 'docs/commands.md'].map(pageOf).join('\n');
    const named = [...pages.matchAll(/`npm run ([a-z:]+)/g)].map((match) => match[1] ?? '');
    for (const name of named) expect(manifest.scripts, name).to.have.property(name);
  });
});

describe('the pages', () => {
  const root = new URL('../../', import.meta.url);
  const pages = globSync('{*.md,{docs,deploy,config,examples}/**/*.md,test/*.md}', { cwd: root });
  const anchorsOf = (text: string) =>
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .trim()
        .replaceAll(' ', '-'),
    );

  it('stand in the table of contents, all of them', () => {
    const contents = readFileSync(new URL('docs/README.md', root), 'utf8');
    const names = pages.flatMap((page) => /^docs\/([\w-]+\.md)$/.exec(page)?.[1] ?? []);
    expect(names).to.have.length.greaterThan(30);
    for (const name of names.filter((one) => one !== 'README.md'))
      expect(contents, name).to.include(`](${name})`);
  });

  it('lead to pages and headings that there are', () => {
    expect(pages).to.include.members(['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'docs/operating.md']);
    for (const page of pages) {
      const text = readFileSync(new URL(page, root), 'utf8');
      for (const [, file = '', anchor] of text.matchAll(/\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)/g)) {
        const target = file === '' ? new URL(page, root) : new URL(file, new URL(page, root));
        expect(existsSync(target), `${page} leads to ${file}`).to.equal(true);
        if (anchor !== undefined && target.pathname.endsWith('.md'))
          expect(anchorsOf(readFileSync(target, 'utf8')), `${page} leads to ${file}`).to.include(anchor);
      }
    }
  });
});

describe('the image', () => {
  it('starts the service as npm start does', () => {
    const file = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
    const { environment, nodeOptions } = startOptions();
    for (const [name, value] of Object.entries(environment)) expect(file).to.include(`${name}=${value}`);
    const [, command = ''] = /^CMD (\[.*\])$/m.exec(file) ?? [];
    expect(JSON.parse(command)).to.deep.equal(['node', ...nodeOptions, 'dist/bootstrap/main.js']);
  });
});
