/** Properties that the routes of keys and certificates share. */
export const common = { tag: 'Keys', surface: 'admin', access: { anyOf: ['issuance:manage', 'presentation:manage'] } } as const;

/** Writing keys affects all configurations, so restricted clients may not. */
export const writeAccess = { ...common, access: { ...common.access, unrestricted: true } } as const;
