import { z } from 'zod';

/** Rights of a client. The values are published; `presentation:offer` is an older name of `presentation:request`. */
export const ROLES = [
  'presentation:manage',
  'presentation:request',
  'issuance:manage',
  'issuance:offer',
  'clients:manage',
  'tenants:manage',
  'registrar:manage',
] as const;

export type Role = (typeof ROLES)[number];

export const Role = z
  .preprocess((value) => (value === 'presentation:offer' ? 'presentation:request' : value), z.enum(ROLES))
  .meta({ id: 'Role', description: 'Rights of the client; `presentation:offer` is a former name of `presentation:request`' });
