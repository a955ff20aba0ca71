export type TenantStatus = 'active' | 'suspended';

/** The status of a tenant that serves wallets and clients. */
export const SERVING: TenantStatus = 'active';
