import { expect } from 'chai';
import { fillPlaceholders, withoutValues } from '../../../config/import/placeholders.ts';
import { escapePlaceholders } from '../../../domain/configuration-files/placeholder.ts';
import type { Json } from '../../../domain/shared/json.ts';

/** A placeholder, written so that nobody takes it for a template. */
const of = (inside: string) => `$\{${inside}}`;
const ENVIRONMENT = { NAME: 'value', _1: 'one', EMPTY: '', BRACES: of('NAME'), MASTER_SECRET: 'the secret' };

const filled = (text: string) => fillPlaceholders(text, ENVIRONMENT, []);

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
    ['a secret of the service', of('MASTER_SECRET'), /belongs to the service itself/],
    ...[
      ...['PGPASSWORD', 'pgpassword', 'VAULT_TOKEN', 'BAO_TOKEN', 'AWS_SECRET_ACCESS_KEY', 'NPM_TOKEN'],
      ...['AZURE_CLIENT_SECRET', 'GOOGLE_APPLICATION_CREDENTIALS', 'KUBERNETES_SERVICE_HOST', 'KMS_PIN'],
    ].map((name): [string, string, RegExp] => [`${name} of what it runs on`, of(name), /what it runs on/]),
    ['the same with a default', of('DATABASE_URL:x'), /belongs to the service itself/],
  ];
  for (const [what, text, message] of refused) {
    it(`refuse ${what}`, () => {
      const { faults } = fillPlaceholders({ a: [{ b: text }] }, ENVIRONMENT, []);
      expect(faults).to.have.length(1);
      expect(faults[0]?.path).to.equal('a.0.b');
      expect(faults[0]?.message).to.match(message);
    });
  }

  it('stand in texts only, at any depth; names and other values stay', () => {
    const document: Json = { [of('NAME')]: [1, true, null, { x: of('NAME') }], n: 7 };
    expect(fillPlaceholders(document, ENVIRONMENT, []).value).to.deep.equal({
      [of('NAME')]: [1, true, null, { x: 'value' }],
      n: 7,
    });
  });

  it('leave out line breaks at the end of a variable, which secrets read from files have', () => {
    const { value, used } = fillPlaceholders(
      { a: of('LINE'), b: `x${of('LINE')}y` },
      { LINE: ' secret \r\n' },
      [],
    );
    expect(value).to.deep.equal({ a: ' secret ', b: 'x secret y' });
    expect(used.get('LINE')).to.equal(' secret ');
  });

  it('count a variable of line breaks alone as not set', () => {
    const { faults } = fillPlaceholders({ a: of('LINE') }, { LINE: '\n' }, []);
    expect(faults.map(({ message }) => message)).to.deep.equal(['the variable LINE is not set']);
  });

  it('are all looked at, however many are wrong', () => {
    const { faults } = fillPlaceholders([of('A'), of('B') + of('C')], ENVIRONMENT, []);
    expect(faults.map(({ path }) => path)).to.deep.equal(['0', '1', '1']);
  });

  it('come back from text that was escaped', () => {
    for (const text of [of('NAME'), `$${of('NAME')}`, '$', '${', `$$${of('x')}`, 'plain']) {
      expect(filled(escapePlaceholders(text)).value, text).to.equal(text);
    }
  });

  it('can be put back where their values would be shown', () => {
    const { used } = fillPlaceholders(
      [of('A'), of('B'), of('C:default')],
      {
        A: 'a secret',
        B: 'a secret(2)',
      },
      [],
    );
    expect(withoutValues('no "a secret(2)", noa secret, the default', used)).to.equal(
      `no "${of('B')}", no${of('A')}, the default`,
    );
    expect(withoutValues('nothing', new Map())).to.equal('nothing');
  });

  describe('in messages', () => {
    const hide = (text: string, value: string) => withoutValues(text, new Map([['NAME', value]]));
    const MESSAGES = [
      'There is no key chain "sining".',
      'the variable OTHER is not set',
      'at least 16 characters; between 60 and 3600',
      'expected one of access, signing',
      'is no tenant id: lower-case letters, digits and -, at most 63',
    ];

    it('leave the words of a message alone, however common the value', () => {
      for (const value of [
        'key',
        'chain',
        'a',
        's',
        'no',
        '16',
        '6',
        '60',
        '-',
        '.',
        ' ',
        'e',
        'set',
        'letters',
      ]) {
        for (const message of MESSAGES) expect(hide(message, value), value).to.equal(message);
      }
    });

    it('are hidden wherever they are quoted, whole or in part, also as JSON writes them', () => {
      for (const value of [
        'key',
        'a',
        '16',
        'hunter',
        'S3cr3t',
        '1234',
        'the-long-secret',
        'se"cr\\et',
        '$&',
        'x\ny',
      ]) {
        for (const quoted of [`"${value}"`, JSON.stringify(value)]) {
          expect(hide(`There is no key chain ${quoted}.`, value), value).to.equal(
            `There is no key chain "${of('NAME')}".`,
          );
        }
      }
      for (const value of ['hunter', 'S3cr3t', '1234', 'the-long-secret']) {
        expect(hide(`no "x-${value}-y", "other"`, value), value).to.equal(`no "x-${of('NAME')}-y", "other"`);
      }
    });

    it('are hidden outside of quotes when nobody can take them for a word', () => {
      for (const value of [
        'the-long-secret',
        'password-of-9',
        'correcthorse',
        '20251224',
        'line one\nline two',
      ]) {
        for (const [before, after] of [
          ['host ', ' is no host'],
          ['https://', '.example: refused'],
          ['x', 'y'],
        ]) {
          expect(hide(before + value + after, value), value).to.equal(before + of('NAME') + after);
        }
      }
      for (const value of ['S3cr3t', 'hunter2', 'P@ss!', 'Admin']) {
        expect(hide(`host ${value} is no host`, value), value).to.equal(`host ${of('NAME')} is no host`);
        expect(hide(`https://${value}.example: refused`, value), value).to.equal(
          `https://${of('NAME')}.example: refused`,
        );
      }
    });
  });

  it('tell texts that they are in by how these were written', () => {
    const { texts } = fillPlaceholders([`${of('A')}-x`, 'plain', of('C:default')], { A: 'key' }, []);
    expect([...texts]).to.deep.equal([
      ['key-x', `${of('A')}-x`],
      ['default', of('C:default')],
    ]);
  });
});
