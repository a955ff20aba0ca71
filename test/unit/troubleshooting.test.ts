import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { OPERATIONS } from '../../adapters/http/operation-ids.ts';
import { WEBHOOK_FAULTS } from '../../application/ports/webhooks.ts';
import { isSetting } from '../../config/settings.ts';
import { SESSION_FAILURE_CODES } from '../../domain/sessions/failure-code.ts';
import { FAILURE_CODES } from '../../domain/shared/failure.ts';
import { REFUSAL_REASONS } from '../../domain/shared/refusal.ts';

const page = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

/** The part of a page below a heading, up to the next. */
function part(text: string, heading: string): string {
  const [, below = ''] = text.split(`\n## ${heading}\n`);
  return below.split('\n## ')[0] ?? '';
}

/** The first cells of the tables of a text, each code on its own. */
function codesIn(text: string): string[] {
  const rows = text.split('\n').filter((line) => line.startsWith('| `'));
  return rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([a-z0-9_]+)`(?!\))/g)].map(([, code = '']) => code),
  );
}

describe('the page about troubles', () => {
  const text = page('troubleshooting.md');

  it('explains every reason for which a session fails, each once', () => {
    expect(codesIn(part(text, 'A session failed'))).to.have.members([...SESSION_FAILURE_CODES]);
  });

  it('explains every failure of a request, each once on its side', () => {
    const [calls, wallets] = ['A call is refused', 'A wallet is refused'].map((name) =>
      codesIn(part(text, name)),
    );
    expect([...(calls ?? []), ...(wallets ?? [])]).to.have.members([...FAILURE_CODES, 'internal_error']);
  });

  it('explains every fault of a webhook', () => {
    expect(codesIn(part(text, 'A webhook failed'))).to.have.members([...WEBHOOK_FAULTS]);
  });

  it('leads to the reasons of a refused presentation, of which none is missing', () => {
    expect(text).to.include('(verifying.md#why-a-presentation-is-refused)');
    const reasons = codesIn(part(page('verifying.md'), 'Why a presentation is refused'));
    expect(reasons).to.have.members([...REFUSAL_REASONS]);
  });

  it('leads from each symptom to a section, whose tables name a cause and what to do', () => {
    const [symptoms = '', ...sections] = text.split(/\n## /);
    const targets = [...symptoms.matchAll(/\]\(#([\w-]+)\)/g)].map(([, anchor = '']) => anchor);
    expect(targets).to.have.length.greaterThan(6);
    for (const anchor of targets) {
      const section = sections.find(
        (one) => one.split('\n')[0]?.toLowerCase().replaceAll(' ', '-') === anchor,
      );
      expect(section, anchor).to.be.a('string');
      const rows = (section ?? '').split('\n').filter((line) => /^\| (?!What|It says|Who)/.test(line));
      for (const row of rows)
        for (const cell of row.split('|').slice(1, -1)) expect(cell.trim(), row).not.to.equal('');
    }
  });

  it('names codes, operations and settings that there are', () => {
    const codes: readonly string[] = [
      ...SESSION_FAILURE_CODES,
      ...FAILURE_CODES,
      ...WEBHOOK_FAULTS,
      ...REFUSAL_REASONS,
      ...['internal_error', 'credential_issuer'],
    ];
    const [before = ''] = text.split('\n## The database went back in time');
    for (const [, code = ''] of before.matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)) expect(codes).to.include(code);
    for (const [, method, path = ''] of before.matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/[^\s?`]*)/g)) {
      const pattern = (operation: string) => new RegExp(`^${operation.replaceAll(/:\w+/g, '[^/]+')}$`);
      const isThere = OPERATIONS.some((operation) => pattern(operation).test(`${method} ${path}`));
      expect(isThere, `${method} ${path}`).to.equal(true);
    }
    for (const [, name = ''] of before.matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g))
      expect(isSetting(name), name).to.equal(true);
  });

  it('says of each where it appears, what causes it and what to do', () => {
    for (const line of text.split('\n').filter((row) => row.startsWith('| `'))) {
      const cells = line.split('|').slice(1, -1);
      expect(cells, line).to.have.length(4);
      for (const cell of cells) expect(cell.trim(), line).to.not.equal('');
    }
  });
});
