console.log("house rules: none yet")
