import { expect } from 'chai';
import { parseDocumentText } from '../../../config/configuration-files/parse-document.ts';
import { fillPlaceholders, withoutValues } from '../../../config/configuration-files/placeholders.ts';
import { isFolder, locationOf, STAGES, shortName } from '../../../domain/configuration-files/folder.ts';
import { escapePlaceholders, SecretVariableNames } from '../../../domain/configuration-files/placeholder.ts';
import type { Json } from '../../../domain/shared/json.ts';

const parse = (text: string, format: 'json' | 'yaml') => parseDocumentText(Buffer.from(text), format);

const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;

describe('configuration files', () => {
  it('are read as JSON', () => {
    const text = '\uFEFF{"a": [1, "x", null, true], "b": {"c": 1e3}}';
    expect(parse(text, 'json')).to.deep.equal({ value: { a: [1, 'x', null, true], b: { c: 1000 } } });
  });

  it('are read as YAML 1.2, where no, dates and versions are text', () => {
    const text = [
      '# a comment',
      'id: pid',
      'answer: no',
      'born: 1985-12-10',
      'version: "1.0"',
      'number: 7',
      'on: true',
      'nothing: null',
      'frame: &frame',
      '  0: {_sd: [a, b]}',
      'same: *frame',
      'pem: |',
      '  -----BEGIN',
      '  -----END',
    ].join('\n');
    expect(parse(text, 'yaml')).to.deep.equal({
      value: {
        id: 'pid',
        answer: 'no',
        born: '1985-12-10',
        version: '1.0',
        number: 7,
        on: true,
        nothing: null,
        frame: { 0: { _sd: ['a', 'b'] } },
        same: { 0: { _sd: ['a', 'b'] } },
        pem: '-----BEGIN\n-----END\n',
      },
    });
  });

  const bomb = Array.from({ length: 9 }, (_, i) =>
    i === 0
      ? 'a0: &a0 [x, x, x, x, x, x, x, x, x]'
      : `a${i}: &a${i} [${Array(9)
          .fill(`*a${i - 1}`)
          .join(', ')}]`,
  ).join('\n');
  const rejectedDocuments: [string, 'json' | 'yaml', string, RegExp][] = [
    ['invalid JSON, with the position', 'json', '{"a": 1,\n "b": 2 "key-in-the-document"}', /is not JSON \(line 2, column 9\)/],
    ['JSON with a comment', 'json', '{/* key-in-the-document */}', /is not JSON/],
    ['nothing', 'json', '', /is not JSON/],
    [
      'a duplicate property',
      'json',
      '{"a": 1,\n\n"a": "key-in-the-document"}',
      /has the property "a" twice in one object \(line 3, column 1\)/,
    ],
    [
      'a duplicate property, once with an escape',
      'json',
      '{"a": 1, "\\u0061": 2}',
      /has the property "a" twice in one object \(line 1, column 10\)/,
    ],
    ['a list', 'json', '[]', /one object/],
    ['a list with a duplicate property', 'json', '[{"a": 1, "a": 2}]', /must be a JSON object/],
    ['a text', 'json', '"key-in-the-document"', /one object/],
    ['depth', 'json', nested(40), /deeper than 32 levels \(line 1, column 161\)/],
    ['a property that reaches a prototype', 'json', '{"__proto__": {}}', /called "__proto__"/],
    ['NUL', 'json', '{"a": "\\u0000"}', /has NUL in a text/],
    ['YAML with a duplicate property', 'yaml', 'a: 1\nb: 2\na: key-in-the-document\n', /duplicate key \(line 3\)/],
    ['invalid YAML', 'yaml', 'a: [1\nb: key-in-the-document: x', /is not supported YAML: .+ \(line \d+\)/],
    ['several documents', 'yaml', 'a: 1\n---\na: 2\n', /multiple docs/],
    ['an unknown tag', 'yaml', 'a: !key-in-the-document x\n', /tag resolve failed \(line 1\)/],
    ['binary data', 'yaml', 'a: !!binary aGVsbG8=\n', /without a JSON equivalent/],
    ['an infinite number', 'yaml', 'a: .inf\n', /without a JSON equivalent/],
    ['a list as a property name', 'yaml', '? [a]\n: 1\n', /neither a string nor a number/],
    ['null as a property name', 'yaml', '~: 1\n', /neither a string nor a number/],
    ['aliases that multiply', 'yaml', bomb, /aliases that expand/],
    ['YAML depth', 'yaml', nested(40), /without a JSON equivalent, or too many/],
    ['a YAML property that reaches a prototype', 'yaml', '__proto__: {a: 1}\n', /without a JSON equivalent/],
    ['a prototype in a constructor', 'json', '{"constructor": {"prototype": {}}}', /"prototype" in "constructor"/],
    ['a YAML prototype in a constructor', 'yaml', 'constructor: {prototype: 1}\n', /without a JSON equivalent/],
    ['YAML that is a string', 'yaml', 'key-in-the-document', /one object/],
    ['an empty file', 'yaml', '', /one object/],
  ];
  for (const [description, format, text, fault] of rejectedDocuments) {
    it(`are rejected with ${description}, without being quoted`, () => {
      const parsed = parse(text, format);
      expect(parsed).to.have.property('fault').that.matches(fault);
      expect(JSON.stringify(parsed)).to.not.include('key-in-the-document');
    });
  }

  it('are rejected when they are not UTF-8', () => {
    const bytes = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
    expect(parseDocumentText(bytes, 'json')).to.deep.equal({ fault: 'is not UTF-8 text' });
  });
});

/** The escape keeps the linter from reading it as a template literal. */
const placeholder = (name: string) => `$\{${name}}`;
const ENVIRONMENT = { NAME: 'value', _1: 'one', EMPTY: '', BRACES: placeholder('NAME'), MASTER_SECRET: 'the secret' };

const fill = (text: string) => fillPlaceholders(text, ENVIRONMENT, []);

describe('placeholders in configuration files', () => {
  const acceptedPlaceholders: [string, string, string][] = [
    ['a variable', placeholder('NAME'), 'value'],
    ['a variable inside of text', `https://${placeholder('NAME')}.example/${placeholder('_1')}`, 'https://value.example/one'],
    ['a default for an unset variable', placeholder('NONE:x'), 'x'],
    ['an empty default', `a${placeholder('NONE:')}b`, 'ab'],
    ['a default with a colon', placeholder('NONE:http://localhost:80'), 'http://localhost:80'],
    ['a default with a line break', placeholder('NONE:a\nb'), 'a\nb'],
    ['a default for an empty variable', placeholder('EMPTY:x'), 'x'],
    ['a variable in preference to its default', placeholder('NAME:x'), 'value'],
    ['a value without further substitution', placeholder('BRACES'), placeholder('NAME')],
    ['an escaped beginning', `$${placeholder('NAME')}`, placeholder('NAME')],
    ['a dollar before an escaped beginning', `$$${placeholder('NAME')}`, `$${placeholder('NAME')}`],
    ['text that resembles a placeholder', 'costs $5, {sessionId}, $NAME, $(NAME)', 'costs $5, {sessionId}, $NAME, $(NAME)'],
  ];
  for (const [description, text, value] of acceptedPlaceholders) {
    it(`accept ${description}`, () => {
      expect(fill(text)).to.deep.include({ value, faults: [] });
    });
  }

  const rejectedPlaceholders: [string, string, RegExp][] = [
    ['an unset variable', placeholder('NONE'), /^the variable NONE is not set$/],
    ['an empty variable', placeholder('EMPTY'), /^the variable EMPTY is not set$/],
    ['a name with a hyphen', placeholder('A-B'), /is written/],
    ['a name that begins with a digit', placeholder('1A'), /is written/],
    ['no name', placeholder(''), /is written/],
    ['a default without a name', placeholder(':x'), /is written/],
    ['an unterminated placeholder', 'a ${NAME', /is written/],
    ['a secret of the service', placeholder('MASTER_SECRET'), /belongs to the service itself/],
    ...[
      ...['PGPASSWORD', 'pgpassword', 'VAULT_TOKEN', 'BAO_TOKEN', 'AWS_SECRET_ACCESS_KEY', 'NPM_TOKEN'],
      ...['AZURE_CLIENT_SECRET', 'GOOGLE_APPLICATION_CREDENTIALS', 'KUBERNETES_SERVICE_HOST', 'KMS_PIN'],
    ].map((name): [string, string, RegExp] => [`${name} of what it runs on`, placeholder(name), /what it runs on/]),
    ['the same with a default', placeholder('DATABASE_URL:x'), /belongs to the service itself/],
  ];
  for (const [description, text, message] of rejectedPlaceholders) {
    it(`reject ${description}`, () => {
      const { faults } = fillPlaceholders({ a: [{ b: text }] }, ENVIRONMENT, []);
      expect(faults).to.have.length(1);
      expect(faults[0]?.path).to.equal('a.0.b');
      expect(faults[0]?.message).to.match(message);
    });
  }

  it('are replaced in texts only, at any depth; names and other values are unchanged', () => {
    const document: Json = { [placeholder('NAME')]: [1, true, null, { x: placeholder('NAME') }], n: 7 };
    expect(fillPlaceholders(document, ENVIRONMENT, []).value).to.deep.equal({
      [placeholder('NAME')]: [1, true, null, { x: 'value' }],
      n: 7,
    });
  });

  it('omit line breaks at the end of a variable, which secrets from files have', () => {
    const { value, used } = fillPlaceholders({ a: placeholder('LINE'), b: `x${placeholder('LINE')}y` }, { LINE: ' secret \r\n' }, []);
    expect(value).to.deep.equal({ a: ' secret ', b: 'x secret y' });
    expect(used.get('LINE')).to.equal(' secret ');
  });

  it('treat a variable that consists of line breaks as not set', () => {
    const { faults } = fillPlaceholders({ a: placeholder('LINE') }, { LINE: '\n' }, []);
    expect(faults.map(({ message }) => message)).to.deep.equal(['the variable LINE is not set']);
  });

  it('are all validated, regardless of the number of invalid ones', () => {
    const { faults } = fillPlaceholders([placeholder('A'), placeholder('B') + placeholder('C')], ENVIRONMENT, []);
    expect(faults.map(({ path }) => path)).to.deep.equal(['0', '1', '1']);
  });

  it('are restored from escaped text', () => {
    for (const text of [placeholder('NAME'), `$${placeholder('NAME')}`, '$', '${', `$$${placeholder('x')}`, 'plain']) {
      expect(fill(escapePlaceholders(text)).value, text).to.equal(text);
    }
  });

  it('can be restored in displayed values', () => {
    const { used } = fillPlaceholders(
      [placeholder('A'), placeholder('B'), placeholder('C:default')],
      { A: 'a secret', B: 'a secret(2)' },
      [],
    );
    expect(withoutValues('no "a secret(2)", noa secret, the default', used)).to.equal(
      `no "${placeholder('B')}", no${placeholder('A')}, the default`,
    );
    expect(withoutValues('nothing', new Map())).to.equal('nothing');
  });

  describe('in messages', () => {
    const redact = (text: string, value: string) => withoutValues(text, new Map([['NAME', value]]));
    const MESSAGES = [
      'There is no key chain "sining".',
      'the variable OTHER is not set',
      'at least 16 characters; between 60 and 3600',
      'expected one of access, signing',
      'is not a valid tenant id: lower-case letters, digits and -, at most 63',
    ];

    it('leave the words of a message unchanged, however common the value', () => {
      for (const value of ['key', 'chain', 'a', 's', 'no', '16', '6', '60', '-', '.', ' ', 'e', 'set', 'letters']) {
        for (const message of MESSAGES) expect(redact(message, value), value).to.equal(message);
      }
    });

    it('are hidden in every quotation, in whole or in part, also in JSON encoding', () => {
      for (const value of ['key', 'a', '16', 'hunter', 'S3cr3t', '1234', 'the-long-secret', 'se"cr\\et', '$&', 'x\ny']) {
        for (const quoted of [`"${value}"`, JSON.stringify(value)]) {
          expect(redact(`There is no key chain ${quoted}.`, value), value).to.equal(`There is no key chain "${placeholder('NAME')}".`);
        }
      }
      for (const value of ['hunter', 'S3cr3t', '1234', 'the-long-secret']) {
        expect(redact(`no "x-${value}-y", "other"`, value), value).to.equal(`no "x-${placeholder('NAME')}-y", "other"`);
      }
    });

    it('are hidden outside of quotes unless the value could be an ordinary word', () => {
      for (const value of ['the-long-secret', 'password-of-9', 'correcthorse', '20251224', 'line one\nline two']) {
        for (const [before, after] of [
          ['host ', ' is no host'],
          ['https://', '.example: refused'],
          ['x', 'y'],
        ]) {
          expect(redact(before + value + after, value), value).to.equal(before + placeholder('NAME') + after);
        }
      }
      for (const value of ['S3cr3t', 'hunter2', 'P@ss!', 'Admin']) {
        expect(redact(`host ${value} is no host`, value), value).to.equal(`host ${placeholder('NAME')} is no host`);
        expect(redact(`https://${value}.example: refused`, value), value).to.equal(`https://${placeholder('NAME')}.example: refused`);
      }
    });
  });

  it('map replaced texts to their original form', () => {
    const { originalTexts } = fillPlaceholders([`${placeholder('A')}-x`, 'plain', placeholder('C:default')], { A: 'key' }, []);
    expect([...originalTexts]).to.deep.equal([
      ['key-x', `${placeholder('A')}-x`],
      ['default', placeholder('C:default')],
    ]);
  });
});

describe('file in the folder of a tenant', () => {
  it('is identified by its path', () => {
    expect(locationOf('keys/signing.json')).to.deep.equal({ kind: 'key-chain', name: 'signing', format: 'json' });
    expect(locationOf('keys/signing.yaml')).to.deep.equal({ kind: 'key-chain', name: 'signing', format: 'yaml' });
    expect(locationOf('keys/signing.yml')?.format).to.equal('yaml');
    for (const path of ['keys/a/b.json', 'key/signing.json', 'keys/signing.txt', 'keys/signing', 'signing.json', 'other.json', '']) {
      expect(locationOf(path), path).to.equal(undefined);
    }
  });

  it('may only be in a folder for its kind', () => {
    for (const path of ['keys', 'issuance', '']) expect(isFolder(path), path).to.equal(true);
    for (const path of ['key', 'keys/a', 'other', 'issu']) expect(isFolder(path), path).to.equal(false);
    const nested = STAGES.flat().map(shortName);
    expect(nested).to.include('key-chain').and.not.include('issuance-configuration');
  });

  it('has a separate variable for each secret', () => {
    const names = new SecretVariableNames('acme-2');
    expect([names.next('pid', 'webhook key'), names.next('pid', 'webhook key'), names.next('pid', 'webhook-key')]).to.deep.equal([
      ...['ACME_2_PID_WEBHOOK_KEY', 'ACME_2_PID_WEBHOOK_KEY_2', 'ACME_2_PID_WEBHOOK_KEY_3'],
    ]);
    expect(new SecretVariableNames('2nd').next('a', 'b')).to.equal('_2ND_A_B');
  });
});
