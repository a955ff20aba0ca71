import { expect } from 'chai';
import { escapePlaceholders, fillPlaceholders, withoutValues } from '../../../config/import/placeholders.ts';
import type { Json } from '../../../domain/shared/json.ts';

/** A placeholder, written so that nobody takes it for a template. */
const of = (inside: string) => `$\{${inside}}`;
const ENVIRONMENT = { NAME: 'value', _1: 'one', EMPTY: '', BRACES: of('NAME'), MASTER_SECRET: 'the secret' };

const filled = (text: string) => fillPlaceholders(text, ENVIRONMENT);

describe('placeholders in configuration files', () => {
  const taken: [string, string, string][] = [
    ['a variable', of('NAME'), 'value'],
    ['one inside of text', `https://${of('NAME')}.example/${of('_1')}`, 'https://value.example/one'],
    ['a default for one that is not set', of('NONE:x'), 'x'],
    ['an empty default', `a${of('NONE:')}b`, 'ab'],
    ['a default with a colon', of('NONE:http://localhost:80'), 'http://localhost:80'],
    ['a default with a line break', of('NONE:a\nb'), 'a\nb'],
    ['a default for an empty variable', of('EMPTY:x'), 'x'],
    ['a variable in preference to its default', of('NAME:x'), 'value'],
    ['a value as it is, without looking at it again', of('BRACES'), of('NAME')],
    ['an escaped beginning', `$${of('NAME')}`, of('NAME')],
    ['a dollar before an escaped beginning', `$$${of('NAME')}`, `$${of('NAME')}`],
    [
      'text that only looks similar',
      'costs $5, {sessionId}, $NAME, $(NAME)',
      'costs $5, {sessionId}, $NAME, $(NAME)',
    ],
  ];
  for (const [what, text, value] of taken) {
    it(`take ${what}`, () => {
      expect(filled(text)).to.deep.include({ value, faults: [] });
    });
  }

  const refused: [string, string, RegExp][] = [
    ['a variable that is not set', of('NONE'), /^the variable NONE is not set$/],
    ['an empty variable', of('EMPTY'), /^the variable EMPTY is not set$/],
    ['a name with a hyphen', of('A-B'), /is written/],
    ['a name that begins with a digit', of('1A'), /is written/],
    ['no name', of(''), /is written/],
    ['a default without a name', of(':x'), /is written/],
    ['one that never ends', 'a ${NAME', /is written/],
    ['a secret of the service', of('MASTER_SECRET'), /secret of the service itself/],
    ['the same with a default', of('DATABASE_URL:x'), /secret of the service itself/],
  ];
  for (const [what, text, message] of refused) {
    it(`refuse ${what}`, () => {
      const { faults } = fillPlaceholders({ a: [{ b: text }] }, ENVIRONMENT);
      expect(faults).to.have.length(1);
      expect(faults[0]?.path).to.equal('a.0.b');
      expect(faults[0]?.message).to.match(message);
    });
  }

  it('stand in texts only, at any depth; names and other values stay', () => {
    const document: Json = { [of('NAME')]: [1, true, null, { x: of('NAME') }], n: 7 };
    expect(fillPlaceholders(document, ENVIRONMENT).value).to.deep.equal({
      [of('NAME')]: [1, true, null, { x: 'value' }],
      n: 7,
    });
  });

  it('are all looked at, however many are wrong', () => {
    const { faults } = fillPlaceholders([of('A'), of('B') + of('C')], ENVIRONMENT);
    expect(faults.map(({ path }) => path)).to.deep.equal(['0', '1', '1']);
  });

  it('come back from text that was escaped', () => {
    for (const text of [of('NAME'), `$${of('NAME')}`, '$', '${', `$$${of('x')}`, 'plain']) {
      expect(filled(escapePlaceholders(text)).value, text).to.equal(text);
    }
  });

  it('can be put back where their values would be shown', () => {
    const { used } = fillPlaceholders([of('A'), of('B'), of('C:default')], { A: 'secret', B: 'secret(2)' });
    expect(withoutValues('no "secret(2)", no secret, the default', used)).to.equal(
      `no "${of('B')}", no ${of('A')}, the default`,
    );
    expect(withoutValues('nothing', new Map())).to.equal('nothing');
  });
});
