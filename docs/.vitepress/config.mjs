import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformerStyleToClass } from '@shikijs/transformers';
import { defineConfig } from 'vitepress';

/**
 * The pages of `docs/` as a site: `npm run docs` serves it, `npm run docs:build` writes it and fails for a dead link. The service
 * serves its own copy under `/docs/guide/`, where the content security policy allows no inline styles: colours of code become classes.
 */
const DOCS = fileURLToPath(new URL('..', import.meta.url));
const isBuild = process.argv.includes('build');
const codeColours = transformerStyleToClass({ classPrefix: 'code-' });

export default defineConfig({
  title: 'Vidimus',
  description: 'Self-hosted service that issues digital credentials to wallets and verifies presentations',
  lang: 'en',
  base: '/docs/guide/',
  outDir: './site',
  cacheDir: './.vitepress/.cache',
  rewrites: { 'README.md': 'index.md', 'decisions/README.md': 'decisions/index.md' },
  metaChunk: true,
  // It would add an inline style sheet.
  appearance: { disableTransition: false },
  // Links to files of the repository outside `docs/` are no pages of the site.
  ignoreDeadLinks: [/^https?:\/\/localhost/, leavesDocs],
  head: isBuild ? [['link', { rel: 'stylesheet', href: '/docs/guide/assets/code.css' }]] : [],
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    codeTransformers: isBuild ? [codeColours] : [],
    config: (markdown) => {
      markdown.core.ruler.push('outside-links', ({ tokens, env }) => unlinkOutside(tokens, env.relativePath));
      markdown.core.ruler.push('aligned-cells', ({ tokens }) => alignByAttribute(tokens));
    },
  },
  // The generator is installed beside the pages, so `vue` is not found from them.
  vite: { resolve: { alias: [vueAlias('vue/server-renderer'), vueAlias('vue', 'vue/dist/vue.runtime.esm-bundler.js')] } },
  themeConfig: {
    sidebar: sidebar(),
    outline: [2, 3],
    search: {
      provider: 'local',
      options: { _render: (text, env, markdown) => (isLong(env.relativePath) ? '' : markdown.render(text, env)) },
    },
  },
  // The service allows no inline styles; these two only prevent a jump while a page loads.
  transformHtml: (html) => html.replaceAll(/ style="[^"]*"/g, ''),
  buildEnd: ({ outDir }) => writeFileSync(join(outDir, 'assets/code.css'), codeColours.getCSS()),
});

function vueAlias(name, module = name) {
  return { find: new RegExp(`^${name}$`), replacement: fileURLToPath(import.meta.resolve(module)) };
}

/** Tables with thousands of rows would double the search index. */
function isLong(path) {
  return /(conformance|limits)\.md$/.test(path);
}

/** @param url as the page states it, or with the prefix that the check for dead links adds. */
function leavesDocs(url) {
  return /(^|\/)\.\.\/(\.\.\/)?(README|CHANGELOG|CONTRIBUTING|SECURITY|LICENSE|examples|deploy|packages|test|config)\b/.test(url);
}

/** The text of a link to a file outside `docs/` stays, as code. @param page path of the page within `docs/`. */
function unlinkOutside(tokens, page = '') {
  for (const { children } of tokens) {
    const stack = [];
    for (const token of children ?? []) {
      if (token.type === 'link_open') {
        const href = token.attrGet('href') ?? '';
        const isOutside = /^\.\.?\//.test(href) && join(DOCS, dirname(page), href).startsWith(DOCS) === false;
        stack.push(isOutside);
        if (isOutside) Object.assign(token, { tag: 'span', attrs: [['title', href]] });
      } else if (token.type === 'link_close' && stack.pop()) token.tag = 'span';
    }
  }
}

/** Cells are aligned by an attribute in place of an inline style, which the service does not allow. */
function alignByAttribute(tokens) {
  for (const token of tokens) {
    const [, side] = /^text-align:(\w+)$/.exec(token.attrGet('style') ?? '') ?? [];
    if (side !== undefined) token.attrs = [...token.attrs.filter(([name]) => name !== 'style'), ['align', side]];
  }
}

/** The groups and tables of docs/README.md, so that a page is listed in one place. */
function sidebar() {
  const contents = readFileSync(join(DOCS, 'README.md'), 'utf8');
  return contents
    .split('\n## ')
    .slice(1)
    .map((section) => ({
      text: section.split('\n')[0],
      items: [...section.matchAll(/\]\(([\w/-]+)\.md\)/g)].map(([, page]) => ({ text: titleOf(page), link: linkOf(page) })),
    }));
}

function titleOf(page) {
  return /^# (.*)$/m.exec(readFileSync(join(DOCS, `${page}.md`), 'utf8'))?.[1] ?? page;
}

function linkOf(page) {
  return `/${page.replace(/README$/, '')}`;
}
