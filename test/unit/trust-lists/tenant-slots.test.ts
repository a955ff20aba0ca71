import { expect } from 'chai';
import { TenantSlots } from '../../../application/trust-lists/tenant-slots.ts';

describe('TenantSlots', () => {
  it('runs as many steps of a tenant at once as it has slots, the others in order, and another tenant beside them', async () => {
    const slots = new TenantSlots(2);
    const started: string[] = [];
    const ends = new Map<string, (error?: Error) => void>();
    const run = (tenant: string, name: string) =>
      slots.run(tenant, () => {
        started.push(name);
        return new Promise<void>((resolve, reject) => {
          ends.set(name, (error) => (error === undefined ? resolve() : reject(error)));
        });
      });
    const settle = () => new Promise((resolve) => setImmediate(resolve));
    const first = run('acme', 'a1').catch((error: Error) => error.message);
    for (const name of ['a2', 'a3', 'a4']) void run('acme', name);
    void run('other', 'o1');
    await settle();
    expect(started).to.deep.equal(['a1', 'a2', 'o1']);
    ends.get('a1')?.(new Error('failed'));
    expect(await first).to.equal('failed');
    await settle();
    expect(started).to.deep.equal(['a1', 'a2', 'o1', 'a3']);
  });
});
