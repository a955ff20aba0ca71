import { expect } from 'chai';
import { readExternalIdentity } from '../../../domain/clients/external-identity.ts';
import { IMPORTER } from '../../../domain/clients/service-names.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';

const RULES = { subjectClaim: 'tenant_id', actorClaim: 'sub', rolesClaim: undefined };
const read = (client_id: string) => readExternalIdentity({ tenant_id: 'acme', client_id }, RULES)?.clientId;

describe('The client that a token of an external provider names', () => {
  it('may have any name of RFC 6749', () => {
    for (const name of ['shop', 'a b', 'https://shop.example/id?x=1', '~!"#', 'importer', 'x'.repeat(256)]) {
      expect(read(name)).to.equal(name);
    }
  });

  it('has no other characters in it, which a log or a database would stumble over', () => {
    for (const name of [
      'a\u0000b',
      'a\nb',
      '\u007f',
      'shöp',
      'a\u00a0b',
      '\u202eshop',
      '',
      'x'.repeat(257),
    ]) {
      expect(read(name), JSON.stringify(name)).to.equal(undefined);
    }
  });

  it('is not what the import of configuration files is called, or what reads like it', () => {
    for (const name of [IMPORTER, 'Folder Import', 'folder  import', ' folder import', 'folder import ']) {
      expect(read(name), name).to.equal(undefined);
    }
  });
});

describe('Who a token of an external provider is for', () => {
  const of = (claims: JsonObject, rolesClaim?: string) =>
    readExternalIdentity({ tenant_id: 'acme', client_id: 'shop', ...claims }, { ...RULES, rolesClaim });

  it('is told by its claims, or by nobody', () => {
    expect(of({})).to.deep.equal({ subject: 'acme', clientId: 'shop', roles: [] });
    const azp = readExternalIdentity({ tenant_id: 'acme', azp: 'shop' }, RULES);
    expect(azp?.clientId, 'as OpenID Connect has it').to.equal('shop');
    for (const claims of [
      { tenant_id: 7 },
      { tenant_id: '' },
      { tenant_id: 'x'.repeat(257) },
      { client_id: 7 },
    ]) {
      expect(of(claims)).to.equal(undefined);
    }
    expect(readExternalIdentity({ client_id: 'shop' }, RULES)).to.equal(undefined);
    expect(readExternalIdentity({ tenant_id: 'acme' }, RULES)).to.equal(undefined);
  });

  it('has the roles that are known, of the place that is meant', () => {
    const [offer, manage] = ['issuance:offer', 'issuance:manage'];
    const roles = [offer, 'uma_protection', offer, 7, manage];
    expect(of({ roles })?.roles).to.deep.equal([offer, manage]);
    expect(of({ realm_access: { roles } })?.roles).to.deep.equal([offer, manage]);
    expect(of({ roles: [manage], realm_access: { roles: [offer] } })?.roles).to.deep.equal([manage]);
    expect(of({ roles: [manage], a: { b: [offer] } }, 'a.b')?.roles).to.deep.equal([offer]);
    expect(of({ roles: [manage] }, 'a.b')?.roles, 'and of no other place').to.deep.equal([]);
  });

  it('has no role of what is no list, or endless', () => {
    const many = (count: number) => [...Array(count - 1).fill('x'), 'issuance:offer'];
    expect(of({ roles: many(200) })?.roles).to.deep.equal(['issuance:offer']);
    for (const roles of [many(201), 'issuance:offer', null]) expect(of({ roles })?.roles).to.deep.equal([]);
  });
});

describe('The person that a token of an external provider names', () => {
  const of = (sub: Json, clientId = 'shop', actorClaim = 'sub') =>
    readExternalIdentity({ tenant_id: 'acme', client_id: clientId, sub }, { ...RULES, actorClaim })?.person;

  it('is the claim of OIDC_ACTOR_CLAIM, in letters of any language', () => {
    expect(of('3f9c2d1e')).to.equal('3f9c2d1e');
    expect(of('Zoë Müller')).to.equal('Zoë Müller');
    expect(of('3f9c2d1e', 'shop', 'email')).to.equal(undefined);
  });

  it('is nobody for a client that calls for itself, and for a claim that is no text', () => {
    for (const sub of ['shop', '', 7, null, ['a']]) expect(of(sub), JSON.stringify(sub)).to.equal(undefined);
    expect(of('acme', 'shop', 'tenant_id')).to.equal(undefined);
  });

  it('is a hash of a name that would not fit into a log', () => {
    const names = ['a\nb', 'a\u0000b', '\u202eanna', 'x'.repeat(101), 'x'.repeat(5000)].map((name) =>
      of(name),
    );
    for (const name of names) expect(name).to.match(/^sha256:[\w-]{22}$/);
    expect(new Set(names).size).to.equal(names.length);
    expect(of('anna', 'x'.repeat(256))).to.equal(undefined);
  });
});
