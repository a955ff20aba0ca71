import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { AjvSchemaValidator } from '../../../adapters/system/schema-validator.ts';
import { binarySchemaOf, claimsFaults, frameOf } from '../../../application/issuance/collect-claims.ts';
import { hostedType } from '../../../application/issuance/hosted-type.ts';
import { aWorld } from '../administration/world.ts';
import { aConfiguration } from './kit.ts';

describe('What was made of one version of a credential configuration', () => {
  const world = aWorld();
  const { configured } = world.caller([]);
  const bytes = { type: 'string', contentEncoding: 'base64' };
  const versions = [
    aConfiguration({
      disclosureFrame: { _sd: ['name'] },
      schema: { type: 'object', properties: { name: { type: 'string' } } },
    }),
    aConfiguration({
      disclosureFrame: { _sd: ['born'] },
      schema: { type: 'object', properties: { name: { type: 'number' }, born: bytes } },
    }),
  ] as const;
  /** Both of them before the tenant is known to have another revision, as somebody sees them who reads while it changes. */
  const ofBoth = <T>(make: (version: (typeof versions)[number]) => T): readonly T[] =>
    [versions[0], versions[1], versions[0]].map(make);

  it('is not taken for what another one says of disclosures', () => {
    const hidden = ofBoth((version) => [...(frameOf(configured, version)?.hidden ?? [])]);
    expect(hidden).to.deep.equal([['name'], ['born'], ['name']]);
  });

  it('is not taken for what another one asks of claims', async () => {
    const ports = { ...world, schemaValidator: new AjvSchemaValidator() };
    const faults = await Promise.all(
      ofBoth((configuration) => claimsFaults(ports, { configured, configuration, claims: { name: 'Ada' } })),
    );
    expect(faults.map(({ length }) => length)).to.deep.equal([0, 1, 0]);
  });

  it('is made once for as long as that version is there, also when it was read anew', () => {
    const counted: string[] = [];
    const make = (document: object, name: string) =>
      configured.deriveOf(document, 'counted', () => counted.push(name));
    const [one, other] = [{}, {}];
    make(one, 'one');
    for (let time = 0; time < 3; time++) make(other, 'other');
    expect(counted).to.deep.equal(['one', 'other']);
  });

  it('does not hold it: what is kept counts as much as was made, and not what it was made of', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const make = () => {
      const version = aConfiguration({ id: 'removed', schema: { type: 'object' } });
      binarySchemaOf(configured, version);
      return new WeakRef(version);
    };
    const made = make();
    // What was looked at in a turn of the event loop stays until its end.
    await turn();
    collect();
    expect(made.deref()).to.equal(undefined);
  });

  it('is not taken for what another one says of bytes, or of its type', () => {
    expect(ofBoth((version) => binarySchemaOf(configured, version)).map(Boolean)).to.deep.equal([
      false,
      true,
      false,
    ]);
    const texts = ofBoth((version) => hostedType(configured, version)?.text);
    expect(texts[0]).to.be.a('string').and.not.equal(texts[1]);
    expect(texts[2]).to.equal(texts[0]);
  });
});
