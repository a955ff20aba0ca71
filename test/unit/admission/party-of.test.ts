import { expect } from 'chai';
import type { Request } from 'express';
import { partyOf } from '../../../adapters/http/party-of.ts';
import type { Route } from '../../../adapters/http/route.ts';
import type { Caller } from '../../../application/caller.ts';

const tenants = { isMet: (id: string) => id === 'acme' || id === 'beta' };

function party(path: string, tenant?: string, tenantId?: string | null) {
  const caller = tenantId === undefined ? undefined : ({ tenantId } as Caller);
  const request = { params: tenant === undefined ? {} : { tenant } } as unknown as Request;
  return partyOf({ path } as Route, request, caller, tenants);
}

describe('Whose share a request counts towards', () => {
  it('is that of the tenant that is called, or whose client calls', () => {
    expect(party('/:tenant/token', 'acme')).to.equal(party('/issuer/offer', undefined, 'acme'));
    expect(party('/:tenant/token', 'beta')).not.to.equal(party('/:tenant/token', 'acme'));
  });

  it('is one for all names that somebody makes up, and all addresses without a tenant', () => {
    const strangers = party('/oauth2/token');
    expect(party('/:tenant/token', 'made-up-1')).to.equal(strangers);
    expect(party('/:tenant/token', 'made-up-2')).to.equal(strangers);
    expect(party('/:tenant/token', 'strangers')).to.equal(strangers);
  });

  it('is another one for accounts that manage tenants, which no tenant can take', () => {
    const operators = party('/tenant', undefined, null);
    expect(operators).not.to.equal(party('/oauth2/token'));
    expect(party('/issuer/offer', undefined, 'operators')).not.to.equal(operators);
  });

  it('is nobody’s where the service is asked how it is', () => {
    for (const path of ['/health', '/health/ready', '/metrics']) expect(party(path)).to.equal(undefined);
  });
});
