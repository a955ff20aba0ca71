import { expect } from 'chai';
import sinon from 'sinon';
import { z } from 'zod';
import { readOnlyNames } from '../../../adapters/http/input/read-only-properties.ts';
import type { Route } from '../../../adapters/http/route.ts';
import { ConfigurationId } from '../../../domain/shared/bounds.ts';
import { Failure, type FieldError } from '../../../domain/shared/failure.ts';
import { isStrictInput, looseInput, strictInput } from '../../../domain/shared/input-object.ts';
import { isOlderName, olderNameOf, withCurrentNames, withKeyReferences } from '../../../domain/shared/older-names.ts';
import { safeParseInput } from '../../../domain/shared/parse-input.ts';
import { HIDDEN, hideSecrets, keepSecrets } from '../../../domain/shared/secrets.ts';
import { updateOf } from '../../../domain/shared/update-of.ts';

const faultsOf = (schema: z.ZodType, value: unknown): readonly FieldError[] => {
  const readDocument = safeParseInput(schema, value);
  return 'errors' in readDocument ? readDocument.errors : [];
};

describe('unknown properties', () => {
  const schema = z
    .object({
      tx_code: z.string().optional(),
      list: z.array(strictInput({ name: z.string() })).default([]),
      table: z
        .record(z.string(), strictInput({ id: z.string() }))
        .nullable()
        .optional(),
      open: looseInput({ a: z.string() }).optional(),
      free: z.record(z.string(), z.json()).optional(),
      either: z.union([z.string(), strictInput({ one: z.string() }), strictInput({ two: z.string() })]).optional(),
    })
    .superRefine(() => {});
  const paths = (value: unknown) => faultsOf(schema, value).map(({ path }) => path);

  it('are reported together with missing properties, also in open objects', () => {
    expect(paths({ list: [{ nam: 'a' }], open: { A: 'x', b: 1 } })).to.have.members(['list.0.name', 'list.0.nam', 'open.a', 'open.A']);
  });

  it('are found at any depth', () => {
    expect(paths({ txCode: 'x', list: [{ name: 'a' }, { name: 'b', nam: 'c' }] })).to.have.members(['txCode', 'list.1.nam']);
    expect(paths({ table: { any: { id: 'a', idd: 'b' } }, either: { two: 'x', three: 'y' } })).to.deep.equal([
      'table.any.idd',
      'either.three',
    ]);
  });

  it('are accepted if the schema allows any property', () => {
    expect(paths({ open: { a: 'x', b: 'y' }, free: { any: { thing: [1] } }, table: null })).to.deep.equal([]);
    expect(paths({ open: { a: 'x', A: 'y' } }), 'unless it resembles a known name').to.deep.equal(['open.A']);
  });

  it('are accepted if they are properties of the answer', () => {
    const view = z.object({ createdAt: z.string(), tx_code: z.string(), certId: z.string() });
    const names = (body: z.ZodType) => readOnlyNames({ body, responses: { 200: view } } as unknown as Route);
    expect(names(schema)).to.deep.equal(['createdAt', 'certId']);
    expect(names(schema.safeExtend({ keyChainId: z.string() }))).to.deep.equal(['createdAt']);
    expect(paths({ list: [{ name: 'a', createdAt: 'x' }] }), 'only at the top').to.deep.equal(['list.0.createdAt']);
  });

  it('are reported with the closest name', () => {
    const [typo, unknownName] = faultsOf(schema, { TXCode: 'x', colour: 'y' });
    expect(typo?.message).to.equal('there is no such property; did you mean tx_code?');
    expect(unknownName?.message).to.equal('there is no such property');
  });

  it('are rejected by name in documents that users write', () => {
    expect(isStrictInput(strictInput({ a: z.string() }))).to.equal(true);
    expect(isStrictInput(z.strictObject({ a: z.string() }))).to.equal(false);
  });

  it('are limited, and have no prototype', () => {
    const thousandFields = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`m${index}`, 1]));
    expect(faultsOf(schema, thousandFields)).to.have.length(50);
    expect(paths(JSON.parse('{"__proto__": 1, "constructor": 2}'))).to.deep.equal(['__proto__', 'constructor']);
  });
});

describe('body of a change', () => {
  const Body = z.object({
    id: z.string().describe('its name'),
    plain: z.string().optional(),
    seconds: z.number().default(300).describe('how long'),
    maybe: z.string().nullable().optional(),
  });
  const changes: [string, unknown, boolean][] = [
    ['nothing', {}, true],
    ['a missing required property', { id: 'x' }, true],
    ['null for a required property', { id: null }, false],
    ['null for a property with a default', { seconds: null }, true],
    ['null for an optional property', { plain: null, maybe: null }, true],
    ['another kind of value', { seconds: 'long' }, false],
    ['an unknown property', { second: 1 }, false],
  ];
  for (const [name, change, isAccepted] of changes) {
    it(`${isAccepted ? 'accepts' : 'rejects'} ${name}`, () => {
      const readDocument = safeParseInput(updateOf(Body), change);
      expect('data' in readDocument ? readDocument.data : undefined).to.deep.equal(isAccepted ? change : undefined);
    });
  }
});

describe('string in place of an object', () => {
  afterEach(() => sinon.restore());

  it('is rejected without reading each of its characters', () => {
    const keys = sinon.spy(Object, 'keys');
    const readDocument = looseInput({ type: z.string() }).safeParse('x'.repeat(1_000));
    const enumerated = keys.args.flat().filter((value) => typeof value === 'string' || value instanceof String);
    expect(readDocument.success).to.equal(false);
    expect(enumerated).to.deep.equal([]);
  });
});

const PROPERTIES = ['keyChainId', 'accessKeyChainId', 'entities', 'note'];
const readDocument = (document: unknown, knownNames = PROPERTIES) => withCurrentNames(document, knownNames);
const FAULT = 'certId and keyChainId are names of the same property; send one, or both with the same value';

describe('document with the former certificate properties', () => {
  const currentDocument = (document: unknown, knownNames = PROPERTIES) => readDocument(document, knownNames).value;

  it('is parsed like one with key chains', () => {
    expect(currentDocument({ certId: 'a', accessCertId: 'b', note: 'n' })).to.deep.equal({
      keyChainId: 'a',
      accessKeyChainId: 'b',
      note: 'n',
    });
    expect(currentDocument({ keyChainId: 'a' })).to.deep.equal({ keyChainId: 'a' });
  });

  it('may have both names with the same value', () => {
    expect(readDocument({ certId: 'a', keyChainId: 'a' })).to.deep.equal({ value: { keyChainId: 'a' }, errors: [] });
    expect(readDocument({ certId: 'a', keyChainId: 'b' }).errors).to.deep.equal([{ path: 'certId', message: FAULT }]);
  });

  it('keeps a name whose present form is not allowed', () => {
    expect(currentDocument({ certId: 'a', issuerCertId: 'b' })).to.deep.equal({ keyChainId: 'a', issuerCertId: 'b' });
    expect(currentDocument({ certId: 'a' }, ['note'])).to.deep.equal({ certId: 'a' });
  });

  it('may have them in the entries of its lists, too', () => {
    const entities = [{ issuerCertId: 'a' }, 'text', { revocationCertId: 'b', certId: 'c', keyChainId: 'd' }];
    const { value, errors } = readDocument({ entities });
    expect(value).to.deep.equal({ entities: [{ issuerKeyChainId: 'a' }, 'text', { revocationKeyChainId: 'b', keyChainId: 'd' }] });
    expect(errors).to.deep.equal([{ path: 'entities.2.certId', message: FAULT }]);
    const trustAnchors = [{ certId: 'a' }];
    expect(currentDocument({ trustAnchors }), 'a list of another type').to.deep.equal({ trustAnchors });
  });

  for (const value of [null, 'text', 1, [{ certId: 'a' }], { entities: 'text' }, { entities: { certId: 'a' } }]) {
    it(`is unchanged if it is not an object: ${JSON.stringify(value)}`, () => {
      expect(currentDocument(value)).to.deep.equal(value);
    });
  }

  it('is returned with both names', () => {
    expect(withKeyReferences({ keyChainId: 'a', note: 'n' })).to.deep.equal({ keyChainId: 'a', certId: 'a', note: 'n' });
    expect(withKeyReferences({ keyChainId: undefined })).to.have.property('certId', undefined);
    expect(withKeyReferences({ note: 'n' })).to.deep.equal({ note: 'n' });
  });

  it('has one former name for each property', () => {
    expect(['keyChainId', 'issuerKeyChainId', 'certId', 'note'].map(olderNameOf)).to.deep.equal([
      'certId',
      'issuerCertId',
      undefined,
      undefined,
    ]);
    const knownNames = (name: string) => isOlderName(name, ['keyChainId']);
    expect(['certId', 'accessCertId', 'keyChainId'].map(knownNames)).to.deep.equal([true, false, false]);
  });
});

const WEBHOOK_SECRETS = {
  secrets: {
    'auth.key': { variable: 'KEY', sentTo: ['url', 'auth.header'], hint: 'the address is another: give the key again' },
    pin: { variable: 'PIN' },
  },
};
const STORED = { url: 'https://a.example', auth: { header: 'x-key', key: 'stored key' }, pin: '1234', note: 'n' };

describe('document secrets', () => {
  it('are hidden, and nothing else', () => {
    expect(hideSecrets(WEBHOOK_SECRETS, STORED)).to.deep.equal({ ...STORED, auth: { header: 'x-key', key: HIDDEN }, pin: HIDDEN });
  });

  for (const withoutSecret of [{}, { pin: null }, { pin: '' }, { auth: {} }, { auth: null }, { auth: { key: '' } }]) {
    it(`are not added to an empty document: ${JSON.stringify(withoutSecret)}`, () => {
      expect(hideSecrets(WEBHOOK_SECRETS, withoutSecret)).to.deep.equal(withoutSecret);
    });
  }

  it('are kept when the document is written back as it was returned', () => {
    expect(keepSecrets(WEBHOOK_SECRETS, hideSecrets(WEBHOOK_SECRETS, STORED), STORED)).to.deep.equal(STORED);
    expect(keepSecrets(WEBHOOK_SECRETS, { ...hideSecrets(WEBHOOK_SECRETS, STORED), note: 'other' }, STORED)).to.deep.equal({
      ...STORED,
      note: 'other',
    });
  });

  it('are replaced by given ones, at any destination', () => {
    const next = { ...STORED, url: 'https://b.example', auth: { header: 'x', key: 'another' }, pin: '' };
    expect(keepSecrets(WEBHOOK_SECRETS, next, STORED)).to.deep.equal(next);
    expect(keepSecrets(WEBHOOK_SECRETS, next, undefined)).to.deep.equal(next);
  });

  const masked = hideSecrets(WEBHOOK_SECRETS, STORED);
  for (const [description, next, before, path, message] of [
    ['when they would go to another address', { ...masked, url: 'https://evil.example' }, STORED, 'auth.key', 'the address is another'],
    [
      'when they would go into another header',
      { ...masked, auth: { key: HIDDEN, header: 'x-log' } },
      STORED,
      'auth.key',
      'the address is another',
    ],
    ['when their address is missing', { auth: masked.auth }, STORED, 'auth.key', 'the address is another'],
    ['when there was no secret', { pin: HIDDEN }, { url: 'x' }, 'pin', 'send the secret, not a masked value'],
    ['when there was no document', { pin: HIDDEN }, undefined, 'pin', 'send the secret, not a masked value'],
  ] as const) {
    it(`must be sent again ${description}`, () => {
      expect(() => keepSecrets(WEBHOOK_SECRETS, next, before))
        .to.throw(Failure, message)
        .with.nested.property('details.errors[0].path', path);
    });
  }
});

describe('configuration id', () => {
  for (const id of ['card', 'Card.v1_2~3-x', 'constructors', 'x'.repeat(128)]) {
    it(`may be ${id}`, () => expect(ConfigurationId.safeParse(id).success).to.equal(true));
  }
  for (const id of ['constructor', 'prototype', '__proto__', '', '-x', 'a b', 'a/b', 'x'.repeat(129)]) {
    it(`may not be "${id}"`, () => expect(ConfigurationId.safeParse(id).success).to.equal(false));
  }
});
