/** What the routes of keys and certificates share. */
export const common = {
  tag: 'Keys',
  surface: 'admin',
  access: { anyOf: ['issuance:manage', 'presentation:manage'] },
} as const;

/** All configurations rest on these. */
export const written = { ...common, access: { ...common.access, unrestricted: true } } as const;
