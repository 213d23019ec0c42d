// Which keys a key may know of: a production key its merchant's of both environments, a test key those of the sandbox.
export const EVERY_ENVIRONMENT = { "type[in]": "production,test" };
