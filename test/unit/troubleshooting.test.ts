import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { WEBHOOK_FAULTS } from '../../application/ports/webhooks.ts';
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

  it('says of each where it appears, what causes it and what to do', () => {
    for (const line of text.split('\n').filter((row) => row.startsWith('| `'))) {
      const cells = line.split('|').slice(1, -1);
      expect(cells, line).to.have.length(4);
      for (const cell of cells) expect(cell.trim(), line).to.not.equal('');
    }
  });
});
